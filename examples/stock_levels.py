"""Stock levels with pandas frames in and out: what can no longer be built, and why.

A bill of materials is recursive; stock changes all day. The rules are derived once, and
every delivery or sale only costs what it changes.
"""

from __future__ import annotations

import pandas as pd

import evermat

RULES = """
    % What a product is made of, over any number of levels.
    needs(?product, ?part) :- part_of(?part, ?product) .
    needs(?product, ?part) :- needs(?product, ?module), part_of(?part, ?module) .

    short(?part) :- stock(?part, ?left), ?left < 10 .
    blocked(?product, ?part) :- needs(?product, ?part), short(?part) .
"""


def main() -> None:
    """Load a bill of materials, then follow two days of stock changes."""
    kb = evermat.KnowledgeBase(RULES)
    parts = [("wheel", "bike"), ("frame", "bike"), ("spoke", "wheel"), ("rim", "wheel")]
    stock = [("spoke", 900), ("rim", 35), ("frame", 12), ("wheel", 40)]
    kb.load(
        {
            "part_of": pd.DataFrame(parts, columns=["part", "product"]),
            "stock": pd.DataFrame(stock, columns=["part", "left"]),
        }
    )
    print("bike needs", sorted(part for (part,) in kb.query("needs('bike', ?part)")))

    sold = kb.update(delete={"stock": [("rim", 35)]}, insert={"stock": [("rim", 4)]})
    print("newly blocked:")
    print(sold.added("blocked").to_pandas().to_string(index=False))

    back = kb.update(delete={"stock": [("rim", 4)]}, insert={"stock": [("rim", 84)]})
    print("no longer short:", back.removed("short").to_list())
    print(f"{back.report.algorithm}: {back.report.seconds * 1000:.1f} ms")


if __name__ == "__main__":
    main()
