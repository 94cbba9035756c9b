"""Plots as SVG: dots on a logarithmic scale, lines on two, and bars.

Each is a string for inclusion in a page: colours are classes of the page's style sheet,
so that it can follow the reader's choice of light or dark, and every mark shows its
value as a tooltip.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

WIDTH = 760
_NARROWEST, _WIDEST, _RIGHT, _TOP, _LINE = 90, 360, 24, 8, 26
_LETTER = 6.6
"""The mean width of a letter of a label; the widest labels are cut in the middle."""
_HEIGHT = 300
_COLOURS = 8
_WAYS = ("default", "remat", "dred", "dred-c", "bf", "bf-c", "fp", "counting")
"""Series with the same colour in all plots; others have that of their position."""

Points = "Sequence[tuple[float, float]]"


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic scale from powers of ten to pixels."""

    low: int
    high: int
    first: float
    last: float

    @classmethod
    def over(cls, values: Sequence[float], first: float, last: float) -> Scale:
        """Return a scale that includes all values, which are positive."""
        low, high = floor(log10(min(values))), ceil(log10(max(values)))
        return cls(low, max(high, low + 1), first, last)

    def place(self, value: float) -> float:
        """Return the position of a value."""
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Return the powers of ten to label."""
        step = max(1, (self.high - self.low) // 8)
        return [10.0**power for power in range(self.low, self.high + 1, step)]


def dots(
    rows: Sequence[tuple[str, Mapping[str, float]]],
    series: Sequence[str],
    shown: Callable[[float], str],
) -> str:
    """A row for each label, and on it a dot for each series."""
    known = [(label, _positive(values)) for label, values in rows]
    known = [(label, values) for label, values in known if values]
    if not known:
        return ""
    every = [value for _, values in known for value in values.values()]
    left = _margin([label for label, _ in known])
    scale = Scale.over(every, left, WIDTH - _RIGHT)
    height = _TOP + _LINE * len(known) + 30
    parts = [_open(height)]
    bottom = height - 26
    for tick in scale.ticks():
        x = scale.place(tick)
        parts.append(_line(x, _TOP, x, bottom, "grid"))
        parts.append(_text(x, bottom + 16, shown(tick), "tick middle"))
    for at, (label, values) in enumerate(known):
        y = _TOP + _LINE * (at + 0.5)
        places = [scale.place(value) for value in values.values()]
        parts.append(_text(left - 12, y + 4, _fitting(label), "label end"))
        parts.append(_line(min(places), y, max(places), y, "range"))
        for name, value in values.items():
            colour = colour_of(name, series)
            parts.append(
                f'<circle class="c{colour}" cx="{scale.place(value):.1f}" '
                f'cy="{y:.1f}" r="5.5"><title>'
                f"{escape(f'{label}, {name}: {shown(value)}')}</title></circle>"
            )
    return "".join([*parts, "</svg>"])


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    names: Sequence[str],
    across: Callable[[float], str],
    up: Callable[[float], str],
) -> str:
    """A line for each series, on two logarithmic scales."""
    known = {
        name: sorted((x, y) for x, y in points if x > 0 and y > 0)
        for name, points in series.items()
    }
    known = {name: points for name, points in known.items() if points}
    if not known:
        return ""
    every = [point for points in known.values() for point in points]
    left = 84
    horizontal = Scale.over([x for x, _ in every], left, WIDTH - _RIGHT)
    vertical = Scale.over([y for _, y in every], _HEIGHT - 30, _TOP)
    parts = [_open(_HEIGHT)]
    for tick in vertical.ticks():
        y = vertical.place(tick)
        parts.append(_line(left, y, WIDTH - _RIGHT, y, "grid"))
        parts.append(_text(left - 10, y + 4, up(tick), "tick end"))
    for tick in horizontal.ticks():
        x = horizontal.place(tick)
        parts.append(_line(x, _TOP, x, _HEIGHT - 30, "grid"))
        parts.append(_text(x, _HEIGHT - 12, across(tick), "tick middle"))
    for name, points in known.items():
        colour = colour_of(name, names)
        path = " ".join(
            f"{horizontal.place(x):.1f},{vertical.place(y):.1f}" for x, y in points
        )
        parts.append(f'<polyline class="l{colour}" points="{path}"/>')
        for x, y in points:
            parts.append(
                f'<circle class="c{colour}" cx="{horizontal.place(x):.1f}" '
                f'cy="{vertical.place(y):.1f}" r="4"><title>'
                f"{escape(f'{name}, {across(x)}: {up(y)}')}</title></circle>"
            )
    return "".join([*parts, "</svg>"])


def bars(rows: Sequence[tuple[str, float]], shown: Callable[[float], str]) -> str:
    """A bar for each label, from zero."""
    known = [(label, value) for label, value in rows if value > 0]
    if not known:
        return ""
    most = max(value for _, value in known)
    left = _margin([label for label, _ in known])
    height = _TOP + _LINE * len(known) + 8
    parts = [_open(height)]
    for at, (label, value) in enumerate(known):
        y = _TOP + _LINE * at
        size = (WIDTH - left - 100) * value / most
        parts.append(_text(left - 12, y + 17, _fitting(label), "label end"))
        parts.append(
            f'<rect class="c0" x="{left}" y="{y + 4}" width="{size:.1f}" '
            f'height="{_LINE - 9}" rx="3"/>'
        )
        parts.append(_text(left + size + 8, y + 17, shown(value), "tick"))
    return "".join([*parts, "</svg>"])


def legend(names: Sequence[str]) -> str:
    """Return the legend of the colours of series."""
    items = (
        f'<li><span class="key k{colour_of(name, names)}"></span>{escape(name)}</li>'
        for name in names
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def colour_of(name: str, names: Sequence[str]) -> int:
    """Return the number of the colour of a series."""
    return _WAYS.index(name) if name in _WAYS else names.index(name) % _COLOURS


def _margin(labels: Sequence[str]) -> int:
    """Return the width that labels take on the left of a plot."""
    longest = _LETTER * max(map(len, labels)) + 16
    return round(min(max(longest, _NARROWEST), _WIDEST))


def _fitting(label: str) -> str:
    """Return a label without its middle, if it is wider than the widest margin."""
    most = int((_WIDEST - 16) / _LETTER)
    if len(label) <= most:
        return label
    half = (most - 1) // 2
    return f"{label[:half]}…{label[-half:]}"


def _positive(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value and value > 0}


def _open(height: float) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg">'
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return (
        f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
        f'y2="{y2:.1f}"/>'
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
