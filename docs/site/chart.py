"""The chart of the front page: what an update costs, by the size of the data.

    python docs/site/chart.py

measures and draws `docs/pictures/updates.svg`. The graphs are chains of ten edges; an
update deletes an edge in the middle of one and inserts it again. Times are of the
processor, the least of several.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import evermat

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = """
reach(?x, ?y) :- edge(?x, ?y), not closed(?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z), not closed(?z) .
"""
SIZES = (10_000, 100_000, 1_000_000)
LENGTH = 10
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 300, 78, 46, 30
DECADES = (-4, 1)
"""Powers of ten of seconds at the ends of the axis."""


def least(work: Callable[[], object], times: int) -> float:
    """The least time of several."""
    found = []
    for _ in range(times):
        start = process_time()
        work()
        found.append(process_time() - start)
    return min(found)


def measure(size: int) -> tuple[float, float]:
    """Seconds for an update, and for starting again."""
    kb = evermat.KnowledgeBase(RULES)
    kb.insert("closed", [(0,)])
    kb.load({"edge": [(at, at + 1) for at in range(size) if at % (LENGTH + 1)]})
    middle = [(LENGTH // 2, LENGTH // 2 + 1)]

    def update() -> None:
        kb.delete("edge", middle)
        kb.insert("edge", middle)

    update()
    return least(update, 20) / 2, least(kb.materialise, 2)


def draw(figures: dict[int, tuple[float, float]]) -> str:
    """The chart: both axes are logarithmic."""
    import math  # noqa: PLC0415  for the axes

    low, high = DECADES

    def y(seconds: float) -> float:
        share = (math.log10(seconds) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    first, last = math.log10(SIZES[0]), math.log10(SIZES[-1])

    def x(size: int) -> float:
        share = (math.log10(size) - first) / (last - first)
        return LEFT + 40 + share * (WIDTH - LEFT - 210)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" class="chart">',
        "<title>What an update costs, by the size of the data</title>",
        "<style>.chart text{font:12px system-ui,sans-serif;fill:#475069}"
        ".chart .grid{stroke:#d5d9e5}.chart .line{fill:none;stroke-width:2.5}"
        ".chart .maintain{stroke:#4f46e5;fill:#4f46e5}"
        ".chart .again{stroke:#d4530b;fill:#d4530b}.chart .line{fill:none}"
        ".chart .name{font-weight:600}"
        "@media(prefers-color-scheme:dark){.chart text{fill:#b7bfd3}"
        ".chart .grid{stroke:#394054}.chart .maintain{stroke:#9aa2ff;fill:#9aa2ff}"
        ".chart .again{stroke:#f79a5c;fill:#f79a5c}.chart .line{fill:none}}</style>",
    ]
    parts.append(
        f'<text class="name" x="{LEFT}" y="14">'
        "Time after a change, by the size of the graph (both axes logarithmic)</text>"
    )
    for power in range(low, high + 1):
        at = y(10.0**power)
        name = f"{10 ** (power + 3):g} ms" if power < 0 else f"{10**power:g} s"
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 150}" '
            f'y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{name}</text>'
        )
    for size in SIZES:
        parts.append(
            f'<text x="{x(size):.1f}" y="{HEIGHT - 24}" '
            f'text-anchor="middle">{size:,} edges</text>'
        )
    for side, (kind, name) in enumerate(
        (("maintain", "update one edge"), ("again", "start again"))
    ):
        points = [(x(size), y(figures[size][side])) for size in SIZES]
        line = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline class="line {kind}" points="{line}"/>')
        parts += [
            f'<circle class="{kind}" cx="{left:.1f}" cy="{top:.1f}" r="4"/>'
            for left, top in points
        ]
        left, top = points[-1]
        shown = figures[SIZES[-1]][side]
        text = f"{shown * 1000:.2g} ms" if shown < 0.1 else f"{shown:.2g} s"
        parts.append(
            f'<text class="name" x="{left + 12:.1f}" y="{top - 2:.1f}">{name}</text>'
            f'<text x="{left + 12:.1f}" y="{top + 14:.1f}">{text}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Measure and draw."""
    figures = {}
    for size in SIZES:
        figures[size] = measure(size)
        print(size, *figures[size])
    path = Path(__file__).parents[1] / "pictures" / "updates.svg"
    path.write_text(draw(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
