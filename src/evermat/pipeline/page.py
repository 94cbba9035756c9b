"""The page of a run: one file of HTML that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #64748b; --line: #e2e8f0;
  --paper: #ffffff; --back: #f6f8fb; --accent: #2563eb; --good: #15803d;
  --bad: #b91c1c; --bar: #bfd3fb; --warn: #b45309 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf5; --soft: #94a3b8;
  --line: #2b3645; --paper: #17202b; --back: #0f161e; --accent: #7aa5ff;
  --good: #4ade80; --bad: #f87171; --bar: #2c4a85; --warn: #fbbf24 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }
h1 { font-size: 1.6rem; margin: 0; letter-spacing: -.01em }
h2 { font-size: 1.05rem; margin: 0 0 .75rem }
.sub { color: var(--soft); margin: .25rem 0 0 }
.badge { display: inline-block; padding: .1rem .6rem; border-radius: 1rem;
  font-size: .8rem; font-weight: 600; vertical-align: .2rem; margin-left: .5rem;
  border: 1px solid currentColor }
.ok { color: var(--good) } .failed { color: var(--bad) } .warn { color: var(--warn) }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
  gap: .75rem; margin: 1.5rem 0 }
.card, section { background: var(--paper); border: 1px solid var(--line);
  border-radius: .6rem }
.card { padding: .8rem 1rem }
.card b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums }
.card span { color: var(--soft); font-size: .85rem }
section { padding: 1.1rem 1.25rem 1.25rem; margin: 1rem 0; overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: .85rem }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top }
tr:last-child td { border-bottom: 0 }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { background: var(--bar); height: .55rem; border-radius: .3rem; min-width: 2px }
td.wide { width: 32% } td.wide .bar { margin-top: .5rem }
code, pre { font: 13px/1.45 ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace }
code { word-break: break-all }
pre { background: var(--back); padding: .8rem 1rem; border-radius: .4rem; margin: 0;
  overflow-x: auto; white-space: pre-wrap }
.plus { color: var(--good) } .minus { color: var(--bad) }
"""


def page(report: Mapping[str, Any]) -> str:
    """The page for a report."""
    title = f"{report['pipeline']} · {report['command']}"
    parts = [
        _heading(report),
        _cards(report),
        _error(report),
        _steps(report),
        _sources(report),
        _rejected(report),
        _predicates(report),
        _outputs(report),
        _work(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><main>\n{''.join(parts)}</main></body></html>\n"
    )


def _heading(report: Mapping[str, Any]) -> str:
    status = report["status"]
    known = {"spark": "Spark", "master": "on", "evermat": "evermat"}
    environment = " ".join(
        f"{known.get(key, key)} {value}"
        for key, value in sorted(report["environment"].items(), reverse=True)
        if key != "evermat"
    )
    engine = environment or f"engine {report['engine']}"
    return (
        f"<h1>{escape(report['pipeline'])}"
        f'<span class="badge {escape(status)}">{escape(status)}</span></h1>\n'
        f'<p class="sub">{escape(report["command"])} of {escape(report["started"])} · '
        f"{escape(engine)} · evermat {escape(report['environment']['evermat'])}</p>\n"
    )


def _cards(report: Mapping[str, Any]) -> str:
    rejected = sum(source["rejected"] for source in report["sources"])
    facts = sum(size["facts"] for size in report["predicates"].values())
    cards = [
        ("seconds", f"{report['seconds']:.1f}", ""),
        ("rows read", _number(sum(s["rows"] for s in report["sources"])), ""),
        ("rows rejected", _number(rejected), "warn" if rejected else ""),
        ("facts hold", _number(facts) if report["predicates"] else "–", ""),
        ("version", report["version"] or "–", ""),
    ]
    shown = "".join(
        f'<div class="card"><b class="{style}">{value}</b><span>{name}</span></div>'
        for name, value, style in cards
    )
    return f'<div class="cards">{shown}</div>\n'


def _error(report: Mapping[str, Any]) -> str:
    if not report["error"]:
        return ""
    text = escape(report["error"])
    return _section("What went wrong", f'<pre class="failed">{text}</pre>')


def _steps(report: Mapping[str, Any]) -> str:
    longest = max((step["seconds"] for step in report["steps"]), default=1) or 1
    rows = [
        [
            escape(step["name"]),
            _bar(step["seconds"] / longest),
            _Right(f"{step['seconds']:.2f} s"),
            escape(step["note"]),
        ]
        for step in report["steps"]
    ]
    return _section("Steps", _table(["step", "", "time", "what came of it"], rows))


def _sources(report: Mapping[str, Any]) -> str:
    rows = []
    for source in report["sources"]:
        facts = ", ".join(f"{name} {_number(n)}" for name, n in source["facts"].items())
        style = "warn" if source["rejected"] else ""
        change = f" ({source['change']})" if source["change"] else ""
        rows.append(
            [
                escape(source["name"] + change),
                escape(source["format"]),
                _Right(_number(source["rows"])),
                _Right(f'<span class="{style}">{_number(source["rejected"])}</span>'),
                _Right(escape(source["allowed"])),
                escape(facts),
            ]
        )
    names = ["source", "format", "rows", "rejected", "allowed", "facts"]
    return _section("Sources", _table(names, rows))


def _rejected(report: Mapping[str, Any]) -> str:
    rows = [
        [
            escape(source["name"]),
            escape(str(row["file"] or "")),
            _Right("" if row["position"] is None else _number(row["position"])),
            escape(str(row["column"] or "")),
            escape(row["reason"]),
            f"<code>{escape(str(row['row']))}</code>",
        ]
        for source in report["sources"]
        for row in source["sample"]
    ]
    names = ["source", "file", "position", "column", "reason", "row"]
    return _section("Rejected rows, some of them", _table(names, rows))


def _predicates(report: Mapping[str, Any]) -> str:
    rows = []
    nothing = {"added": 0, "removed": 0}
    for name, size in sorted(report["predicates"].items()):
        change = report["changes"].get(name, nothing)
        came, left = change["added"], change["removed"]
        rows.append(
            [
                escape(name),
                _Right(_number(size["facts"])),
                _Right(_number(size["given"])),
                _Right(f'<span class="plus">+{_number(came)}</span>' if came else ""),
                _Right(f'<span class="minus">−{_number(left)}</span>' if left else ""),
            ]
        )
    names = ["predicate", "facts", "given", "came", "left"]
    return _section("Predicates", _table(names, rows))


def _outputs(report: Mapping[str, Any]) -> str:
    rows = [
        [
            escape(output["title"]),
            f"{escape(output['format'])}, {escape(output['mode'])}",
            _Right(_number(output["rows"])),
            f"<code>{escape(output['place'])}</code>",
        ]
        for output in report["outputs"]
    ]
    return _section("Outputs", _table(["output", "form", "rows", "place"], rows))


def _work(report: Mapping[str, Any]) -> str:
    work = dict(report["work"])
    if report["ignored_axioms"]:
        work["axioms that are no rules"] = ", ".join(
            f"{name} ({count:,})" for name, count in report["ignored_axioms"].items()
        )
    rows = [
        [escape(name.replace("_", " ")), escape(_plain(value))]
        for name, value in work.items()
        if value not in {"", 0}
    ]
    return _section("Materialisation", _table(["", ""], rows))


def _bar(share: float) -> str:
    return f'<div class="bar" style="width:{100 * share:.1f}%"></div>'


class _Right(str):
    """A cell that is set to the right."""

    __slots__ = ()


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>\n" if content else ""


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    right = [isinstance(cell, _Right) for cell in rows[0]]
    head = "".join(
        f"<th{_class('number') if is_right else ''}>{name}</th>"
        for name, is_right in zip(names, right, strict=True)
    )
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    header = f"<thead><tr>{head}</tr></thead>" if any(names) else ""
    return f"<table>{header}<tbody>{body}</tbody></table>"


def _cell(cell: str) -> str:
    if isinstance(cell, _Right):
        return f"<td{_class('number')}>{cell}</td>"
    is_bar = cell.startswith('<div class="bar"')
    return f"<td{_class('wide') if is_bar else ''}>{cell}</td>"


def _class(name: str) -> str:
    return f' class="{name}"'


def _number(value: int) -> str:
    return f"{value:,}"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f} s"
    return f"{value:,}" if isinstance(value, int) else str(value)
