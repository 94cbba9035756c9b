"""Why somebody may open a folder: explanations before and after a reorganisation.

The rules are those of the example `access`, on a company that is small enough to read.
"""

from __future__ import annotations

from pathlib import Path

import evermat

RULES = Path(__file__).parent / "access" / "rules.dl"


def main() -> None:
    """Explain a right, move a team, and explain it again."""
    kb = evermat.KnowledgeBase(RULES)
    kb.load(
        {
            "part_of": [("web", "engineering"), ("engineering", "company")],
            "works_in": [("ann", "web"), ("bob", "web")],
            "parent": [("plans", "internal"), ("roadmap", "plans")],
            "grant": [("engineering", "internal"), ("web", "roadmap")],
            "suspended": [("bob",)],
        }
    )
    print(kb.explain("may_open", ("ann", "plans")))

    print("\nThere is more than one reason why ann may open the roadmap:")
    explanation = kb.explain("granted", ("ann", "roadmap"), derivations=5)
    for derivation in explanation.derivations:
        print(" ", derivation.place, derivation.values)

    kb.delete("grant", [("web", "roadmap")])
    print("\nOne of them is taken away, another is left:")
    print(kb.explain("granted", ("ann", "roadmap")))

    print()
    print(kb.explain("may_open", ("bob", "plans")))


if __name__ == "__main__":
    main()
