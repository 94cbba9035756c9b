"""Drawings of proofs (SVG): the fact at the top, then the rule, then its premises.

The layout is that of a tree: premises side by side, each within its own part of the
width, and their conclusion above the middle. A fact that was already proved further to
the left is referred to, not proved again.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from evermat.lang.printer import Printer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.explain.explanation import Derivation, Explanation
    from evermat.maintenance.proof import Fact

_CHARACTER, _SMALL = 7.3, 6.1
"""The widths of a character of a fact, and of a rule, in pixels."""
_LINE = 14
_BOX, _GAP, _MARGIN = 30, 22, 16
_LONGEST, _WIDEST = 60, 44
"""The most characters of a fact, and of a line of a rule; the rest is in a tooltip."""
_MOST_LINES = 4

_STYLE = """
.proof text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  fill: #1f2430; text-anchor: middle; }
.proof .rule { font-size: 10px; fill: #667085; }
.proof rect { stroke-width: 1.2; }
.proof .derived rect { fill: #eef2ff; stroke: #6172f3; }
.proof .explicit rect { fill: #ecfdf3; stroke: #12a150; }
.proof .again rect { fill: none; stroke: #98a2b3; stroke-dasharray: 4 3; }
.proof .absent rect { fill: #fff4ed; stroke: #e2590f; stroke-dasharray: 4 3; }
.proof path { fill: none; stroke: #98a2b3; stroke-width: 1.2; }
@media (prefers-color-scheme: dark) {
  .proof text { fill: #e6e9f2; }
  .proof .rule { fill: #98a2b3; }
  .proof .derived rect { fill: #23294d; stroke: #8098f9; }
  .proof .explicit rect { fill: #12301f; stroke: #3ccb7f; }
  .proof .absent rect { fill: #3b2113; stroke: #f38744; }
  .proof path { stroke: #667085; }
}
"""


@dataclass(slots=True)
class _Node:
    """A box of the drawing.

    Attributes:
        kind: `derived`, `explicit`, `again` or `absent`.
        remarks: the lines between the box and its premises.
        left, width: the part of the drawing for the box and everything below it.
    """

    text: str
    kind: str
    remarks: list[str] = field(default_factory=list)
    tooltip: str = ""
    needs: list[_Node] = field(default_factory=list)
    left: float = 0.0
    width: float = 0.0

    @property
    def own_width(self) -> float:
        """The width of the box and of its remarks."""
        box = len(_shortened(self.text)) * _CHARACTER + 20
        lines = max((len(line) for line in self.remarks), default=0) * _SMALL + 8
        return max(box, lines)

    @property
    def below(self) -> float:
        """The distance from the top of the box to its premises."""
        return _BOX + len(self.remarks) * _LINE + _GAP


def proof_svg(explanation: Explanation) -> str:
    """Draw the proof of a fact, or the reasons why it does not hold."""
    root = _tree(explanation) if explanation.holds else _failures(explanation)
    _measure(root)
    _place(root, _MARGIN)
    height = _height(root) + 2 * _MARGIN
    width = root.width + 2 * _MARGIN
    parts = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" class="proof" role="img" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}">'
        ),
        f"<title>{escape(_title(explanation))}</title>",
        f"<style>{_STYLE}</style>",
        *_drawn(root, _MARGIN),
        "</svg>",
    ]
    return "\n".join(parts)


def _title(explanation: Explanation) -> str:
    fact = explanation.fact_text(explanation.fact)
    return f"Why {fact} holds" if explanation.holds else f"Why {fact} does not hold"


# ----------------------------------------------------------------------------- trees


def _tree(explanation: Explanation) -> _Node:
    """Return the facts of a proof, each below its conclusion."""
    seen: set[Fact] = set()

    def node(fact: Fact) -> tuple[_Node, tuple[Fact, ...]]:
        derivation = explanation.steps[fact]
        text = explanation.fact_text(fact)
        if derivation is None:
            return _Node(text, "explicit"), ()
        if fact in seen:
            return _Node(text, "again", ["see elsewhere"]), ()
        seen.add(fact)
        made = _Node(text, "derived", _rule_lines(explanation, derivation))
        made.tooltip = "\n".join(explanation.remarks(derivation))
        return made, derivation.premises

    root, premises = node(explanation.fact)
    waiting = [(root, explanation.steps[explanation.fact], premises)]
    while waiting:  # proofs may be higher than Python's stack
        above, derivation, facts = waiting.pop(0)
        for fact in facts:
            below, premises = node(fact)
            above.needs.append(below)
            waiting.append((below, explanation.steps[fact], premises))
        if derivation is not None and above.kind == "derived":
            printer = Printer(explanation.prefixes)
            above.needs += [
                _Node(f"no {printer.atom(atom)}", "absent")
                for atom in derivation.absent
            ]
    return root


def _rule_lines(explanation: Explanation, derivation: Derivation) -> list[str]:
    rule = Printer(explanation.prefixes).rule(derivation.rule)
    return _lines(" ".join(rule.split()))


def _failures(explanation: Explanation) -> _Node:
    root = _Node(f"{explanation.fact_text(explanation.fact)}", "absent")
    root.remarks = ["does not hold" if explanation.failures else "no rule derives it"]
    for failure in explanation.failures:
        rule, *others = explanation.failure_remarks(failure)
        text = others[-1] if others else ""
        below = _Node(text, "absent", _lines(rule), "\n".join([rule, *others]))
        root.needs.append(below)
    return root


def _lines(text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDEST, break_long_words=True)
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][:-1]}…"]
    return lines


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# --------------------------------------------------------------------------- drawing


def _in_order(root: _Node) -> list[_Node]:
    """Return all nodes, each before the nodes below it."""
    found = [root]
    for node in found:
        found += node.needs
    return found


def _measure(root: _Node) -> None:
    for node in reversed(_in_order(root)):
        below = sum(each.width for each in node.needs)
        below += _GAP * max(0, len(node.needs) - 1)
        node.width = max(node.own_width, below)


def _place(root: _Node, left: float) -> None:
    root.left = left
    for node in _in_order(root):
        below = sum(each.width for each in node.needs)
        below += _GAP * max(0, len(node.needs) - 1)
        at = node.left + (node.width - below) / 2
        for each in node.needs:
            each.left = at
            at += each.width + _GAP


def _height(root: _Node) -> float:
    heights: dict[int, float] = {}
    for node in reversed(_in_order(root)):
        tallest = max((heights[id(each)] for each in node.needs), default=0.0)
        own = _BOX + len(node.remarks) * _LINE
        heights[id(node)] = node.below + tallest if node.needs else own
    return heights[id(root)]


def _drawn(root: _Node, top: float) -> Iterator[str]:
    waiting = [(root, top)]
    while waiting:
        node, y = waiting.pop()
        middle = node.left + node.width / 2
        width = len(_shortened(node.text)) * _CHARACTER + 20
        end = y + node.below
        for each in node.needs:
            x = each.left + each.width / 2
            start = y + _BOX + len(node.remarks) * _LINE + 3
            half = (start + end) / 2
            yield (
                f'<path d="M{middle:.1f} {start:.1f}C{middle:.1f} {half:.1f} '
                f'{x:.1f} {half:.1f} {x:.1f} {end:.1f}"/>'
            )
            waiting.append((each, end))
        yield f'<g class="{node.kind}">'
        tooltip = node.tooltip or (node.text if len(node.text) > _LONGEST else "")
        yield from [f"<title>{escape(tooltip)}</title>"] * bool(tooltip)
        yield (
            f'<rect x="{middle - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{_BOX}" rx="7"/>'
        )
        yield _text(middle, y + 19, _shortened(node.text))
        for number, line in enumerate(node.remarks):
            yield _text(middle, y + _BOX + 12 + number * _LINE, line, "rule")
        yield "</g>"


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
