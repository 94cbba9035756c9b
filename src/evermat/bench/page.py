"""A self-contained page with plots of the figures of suites.

Every plot has its numbers below it, folded away.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from evermat.bench.plots import bars, dots, legend, lines
from evermat.bench.report import count_text, megabytes_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with its heading, its description, and its numbers.

    Attributes:
        numbers: rows of strings, the first of which is the heading.
    """

    title: str
    text: str
    svg: str
    names: Sequence[str] = ()
    numbers: Sequence[Sequence[str]] = ()


def page(contents: Sequence[Json]) -> str:
    """Return a page about one or more files written with `--json`.

    Raises:
        ValueError: a file is from a suite without plots.
    """
    sections = []
    for content in contents:
        suite = str(content.get("suite"))
        if suite not in _SUITES:
            message = f"there are no plots for the suite `{suite}`"
            raise ValueError(message)
        plots = [plot for plot in _SUITES[suite](content) if plot.svg]
        sections.append(_section(suite, content, plots))
    return _PAGE.format(style=_STYLE, body="".join(sections))


def _section(suite: str, content: Json, plots: Sequence[Plot]) -> str:
    machine = content.get("machine", {})
    options = content.get("options", {})
    facts = [
        str(machine.get("processor", "")),
        f"{machine.get('cores', '?')} cores",
        f"Python {machine.get('python', '?')}",
        f"evermat {machine.get('packages', {}).get('evermat', '?')}",
        f"scale {options.get('scale', 1):g}",
    ]
    shown = "".join(map(_figure, plots)) or "<p>Nothing was measured.</p>"
    return (
        f"<section><h2>{escape(suite)}</h2>"
        f'<p class="machine">{escape(" · ".join(filter(None, facts)))}</p>{shown}'
        "</section>"
    )


def _figure(plot: Plot) -> str:
    numbers = ""
    if plot.numbers:
        head, *rows = plot.numbers
        cells = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        numbers = (
            "<details><summary>numbers</summary><div><table><thead><tr>"
            f"{heads}</tr></thead><tbody>{cells}</tbody></table></div></details>"
        )
    key = legend(plot.names) if plot.names else ""
    return (
        f"<figure><figcaption><h3>{escape(plot.title)}</h3><p>{escape(plot.text)}</p>"
        f"</figcaption>{key}{plot.svg}{numbers}</figure>"
    )


def _dotted(
    title: str,
    text: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    shown: Callable[[float], str] = seconds_text,
) -> Plot:
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    numbers = [
        ("", *names),
        *(
            (label, *(shown(values[n]) if n in values else "–" for n in names))
            for label, values in rows
        ),
    ]
    return Plot(title, text, dots(rows, names, shown), names, numbers)


def _lined(
    title: str,
    text: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    across: Callable[[float], str] = count_text,
) -> Plot:
    names = list(series)
    numbers = [("", "", "")]
    numbers += [
        (name, across(x), seconds_text(y))
        for name, points in series.items()
        for x, y in points
    ]
    svg = lines(series, names, across, seconds_text)
    return Plot(title, text, svg, names, numbers)


def _barred(title: str, text: str, rows: Sequence[tuple[str, float]]) -> Plot:
    return Plot(title, text, bars(rows, megabytes_text))


# -------------------------------------------------------------------------- suites


def _maintain(content: Json) -> Iterator[Plot]:
    cases: dict[str, dict[str, Json]] = {}
    for row in content["rows"]:
        cases.setdefault(row["case"], {})[row["algorithm"]] = row
    for step, text in (("delete", "taken away"), ("insert", "put back")):
        yield _dotted(
            f"Time to {step}, by algorithm",
            f"Facts that are {text}; `remat` derives everything again.",
            [
                (case, _seconds(rows, step))
                for case, rows in cases.items()
                if _seconds(rows, step)
            ],
        )
    parts: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for case, rows in cases.items():
        workload, _, percent = case.rpartition("-")
        if percent.endswith("pc"):
            for name, seconds in _seconds(rows, "delete").items():
                points = parts.setdefault(workload, {}).setdefault(name, [])
                points.append((float(percent.removesuffix("pc")), seconds))
    for workload, series in parts.items():
        yield _lined(
            f"Where starting again wins: {workload}",
            "Percent of the facts that are deleted, and the time; maintaining pays "
            "where its line is below that of `remat`.",
            series,
            lambda percent: f"{percent:g} %",
        )
    yield _barred(
        "Memory",
        "The most a process had, with Python and the input; least over algorithms.",
        [
            (case, min(peaks))
            for case, rows in cases.items()
            if (
                peaks := [
                    r["peak_megabytes"]
                    for r in rows.values()
                    if r.get("peak_megabytes")
                ]
            )
        ],
    )


def _seconds(rows: Mapping[str, Json], step: str) -> dict[str, float]:
    return {
        name: row["seconds"][step]
        for name, row in rows.items()
        if step in row.get("seconds", {})
    }


def _materialise(content: Json) -> Iterator[Plot]:
    by_workload: dict[str, dict[str, float]] = {}
    growth: dict[str, list[tuple[float, float]]] = {}
    memory: dict[str, float] = {}
    for row in content["rows"]:
        seconds = row.get("seconds")
        if not isinstance(seconds, int | float):
            continue
        if row["system"] == "evermat":
            growth.setdefault(row["workload"], []).append((row["scale"], seconds))
            memory[f"{row['workload']}, scale {row['scale']:g}"] = (
                row.get("peak_megabytes") or 0.0
            )
        if row["scale"] == content["options"]["scale"]:
            by_workload.setdefault(row["workload"], {})[row["system"]] = seconds
    yield _dotted(
        "Time to materialise, by system",
        "From facts that are loaded to all that follows.",
        list(by_workload.items()),
    )
    several = {name: points for name, points in growth.items() if len(points) > 1}
    yield _lined(
        "Growth",
        "Time by the size of the workload.",
        several,
        lambda scale: f"{scale:g}×",
    )
    yield _barred("Memory", "The most a process had.", list(memory.items()))


def _paper(content: Json) -> Iterator[Plot]:
    for table, title in (
        ("000-1", "Deleting few facts (000, Table 1)"),
        ("000-2", "Deleting up to the equilibrium (000, Table 2)"),
        ("003", "Closures with modules and without (003)"),
    ):
        rows = [
            (row, _ways(records, "deleted"))
            for row, records in content["tables"].get(table, {}).items()
        ]
        yield _dotted(title, "Look-alikes of the paper's data sets.", rows)
    for row, records in content["tables"].get("001-1", {}).items():
        yield _lined(
            f"Deleting with equality: {row}",
            "Facts that are deleted, and the time.",
            _series(records, "deleted", "count"),
        )
    for row, records in content["tables"].get("rules", {}).items():
        for event in ("removed", "added"):
            yield _lined(
                f"Rules {event}: {row}",
                "How many rules, and the time.",
                _series(records, event, "count"),
            )
    for records in content["tables"].get("examples", {}).values():
        for name in dict.fromkeys(record["name"] for record in records):
            mine = [record for record in records if record["name"] == name]
            yield _lined(
                f"Growth: {name}",
                "The size of the example, and the time to delete.",
                _series(mine, "example", "factor"),
                lambda factor: f"{factor:g} n",
            )
    memory = [
        (f"{row}, {record['way']}", record["bytes"] / 1e6)
        for row, records in content["tables"].get("000-2", {}).items()
        for record in records
        if record.get("way", "").startswith("remat") and "bytes" in record
    ]
    yield _barred("Memory of facts", "By what is counted: nothing, one, both.", memory)


def _ways(records: Iterable[Json], event: str) -> dict[str, float]:
    return {
        record["way"]: record["seconds"]
        for record in records
        if record["event"] == event
    }


def _series(
    records: Iterable[Json], event: str, across: str
) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record["event"] == event and across in record:
            points = series.setdefault(record["way"], [])
            points.append((record[across], record["seconds"]))
    return series


def _own(content: Json) -> Iterator[Plot]:
    rows: dict[str, dict[str, float]] = {}
    gone: dict[str, list[tuple[float, float]]] = {}
    came: dict[str, list[tuple[float, float]]] = {}
    for step in content["steps"]:
        if step["seconds"] is not None:
            rows.setdefault(step["update"], {})[step["way"]] = step["seconds"]
            removed, added = step["removed"], step["added"]
            points = (gone if removed > added else came).setdefault(step["way"], [])
            points.append((max(removed, added), step["seconds"]))
    yield _dotted("Time by update", "Each way went through all.", list(rows.items()))
    for series, verb in ((gone, "left"), (came, "came")):
        yield _lined(
            f"Time by the number of facts that {verb}",
            "Maintaining pays where its line is below that of `remat`.",
            series,
        )
    yield _barred(
        "Memory of facts",
        "With the counters that each way keeps.",
        [(way, each["bytes"] / 1e6) for way, each in content["loading"].items()],
    )


def _modules(content: Json) -> Iterator[Plot]:
    rows: dict[str, dict[str, float]] = {}
    for row in content["rows"]:
        side = "modules" if row["modules"] else "no modules"
        for step, seconds in row["seconds"].items():
            label = f"{row['workload']} ×{row['scale']:g}: {step}"
            rows.setdefault(label, {})[side] = seconds
    yield _dotted("Closures", "With modules and without.", list(rows.items()))


_SUITES: dict[str, Callable[[Json], Iterator[Plot]]] = {
    "maintain": _maintain,
    "materialise": _materialise,
    "modules": _modules,
    "paper": _paper,
    "run": _own,
}

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Evermat: measurements</title>
<style>{style}</style>
</head>
<body>
<header><h1>Evermat: measurements</h1>
<p>Times are on logarithmic scales. Rest on a mark to see its value.</p></header>
<main>{body}</main>
</body>
</html>
"""

_STYLE = """
:root { --ink: #1b1f24; --soft: #5b6570; --paper: #fbfbf9; --card: #fff;
  --edge: #e3e5e2; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7;
  --c4: #e69f00; --c5: #56b4e9; --c6: #8c564b; --c7: #7f7f7f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e4; --soft: #a0a7ae;
  --paper: #15181b; --card: #1d2125; --edge: #32383e; --c0: #4aa8e0; --c1: #f08a45;
  --c2: #35c79b; --c3: #e3a0c6; --c4: #f2bd3c; --c5: #8fd0f7; --c6: #c49a8f;
  --c7: #aaa; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", sans-serif; }
header, main { max-width: 860px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 40px; }
h1 { font-size: 1.9rem; margin: 0; } h2 { margin: 48px 0 0; font-size: 1.4rem; }
h3 { margin: 0; font-size: 1.05rem; }
p { margin: 4px 0 0; color: var(--soft); }
.machine { font-size: .85rem; }
figure { margin: 20px 0; padding: 20px; background: var(--card);
  border: 1px solid var(--edge); border-radius: 10px; }
svg { display: block; width: 100%; height: auto; margin-top: 12px; }
svg text { font: 12px system-ui, "Segoe UI", sans-serif; fill: var(--soft); }
svg .label { fill: var(--ink); }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--edge); } .range { stroke: var(--edge); stroke-width: 3; }
polyline { fill: none; stroke-width: 2; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; padding: 0;
  margin: 12px 0 0; font-size: .85rem; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 50%;
  margin-right: 6px; }
details { margin-top: 10px; font-size: .85rem; }
summary { cursor: pointer; color: var(--soft); }
details div { overflow-x: auto; }
table { border-collapse: collapse; margin-top: 8px;
  font-variant-numeric: tabular-nums; }
td, th { padding: 3px 10px; text-align: right; border-bottom: 1px solid var(--edge);
  white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
""" + "\n".join(
    f".c{n} {{ fill: var(--c{n}); }} .l{n} {{ stroke: var(--c{n}); }} "
    f".k{n} {{ background: var(--c{n}); }}"
    for n in range(8)
)
