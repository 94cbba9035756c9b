"""The report of a run: a JSON document and a page for each run."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from html import escape
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow.fs as arrow_fs

from evermat.errors.redaction import redacted_values
from evermat.pipeline.errors import naming, plain_output_errors
from evermat.pipeline.files import file_system
from evermat.pipeline.program import state_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.api import KnowledgeBase
    from evermat.kb.profile import Profile
    from evermat.pipeline.config import Config
    from evermat.pipeline.expectations import Finding
    from evermat.pipeline.intake import Taken
    from evermat.pipeline.outputs import Written
    from evermat.pipeline.stream import StreamReport
    from evermat.results.change import Change


# ------------------------------------------------------------------------------- steps


@dataclass(slots=True)
class Step:
    """A step that has begun.

    Attributes:
        note: its result, in a few words.
    """

    name: str
    note: str = ""
    seconds: float = 0.0


class Watcher(Protocol):
    """Receives the progress of a run."""

    def begin(self, step: Step) -> None:
        """A step begins."""

    def end(self, step: Step) -> None:
        """A step has ended; its note and its time are known."""

    def fail(self, step: Step) -> None:
        """A step has failed."""

    def tell(self, news: str) -> None:
        """There is progress within a step."""


class Silent:
    """A watcher that prints nothing."""

    def begin(self, step: Step) -> None:
        """Do nothing."""

    def end(self, step: Step) -> None:
        """Do nothing."""

    def fail(self, step: Step) -> None:
        """Do nothing."""

    def tell(self, news: str) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Steps:
    """All steps of a run, in order."""

    watcher: Watcher
    done: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time and report a step; errors in it get its name."""
        step = Step(name)
        start = perf_counter()
        self.watcher.begin(step)
        self.done.append(step)
        try:
            with naming(name):
                yield step
        except BaseException:
            step.seconds = perf_counter() - start
            self.watcher.fail(step)
            raise
        step.seconds = perf_counter() - start
        self.watcher.end(step)


# ---------------------------------------------------------------------------- the page

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
    """Return the page for a report."""
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
        _contradictions(report),
        _expectations(report),
        _work(report),
        _profile(report),
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
        added, removed = change["added"], change["removed"]
        rows.append(
            [
                escape(name),
                _Right(_number(size["facts"])),
                _Right(_number(size["explicit"])),
                _Right(f'<span class="plus">+{_number(added)}</span>' if added else ""),
                _Right(
                    f'<span class="minus">−{_number(removed)}</span>' if removed else ""
                ),
            ]
        )
    names = ["predicate", "facts", "explicit", "added", "removed"]
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


_SHOWN_CONTRADICTIONS = 20


def _contradictions(report: Mapping[str, Any]) -> str:
    """Return the section of contradictions, if there are any."""
    found = report.get("contradictions") or {"count": 0}
    if not found["count"]:
        return ""
    rows = [[f"<code>{escape(each)}</code>"] for each in found["shown"]]
    more = found["count"] - len(rows)
    if more:
        rows.append([f"and {_number(more)} more"])
    return _section("Contradictions", _table(["contradiction"], rows))


def _expectations(report: Mapping[str, Any]) -> str:
    rows = [
        [escape(each["name"]), escape(each["action"]), escape(each["note"])]
        for each in report["expectations"]
    ]
    if not rows:
        return ""
    return _section("Expectations", _table(["expectation", "otherwise", ""], rows))


def _work(report: Mapping[str, Any]) -> str:
    work = {"place": report["place"], **report["work"]}
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


def _profile(report: Mapping[str, Any]) -> str:
    rules = report["profile"]
    ordered = sorted(rules, key=lambda each: -each["seconds"])
    longest = max((each["seconds"] for each in rules), default=0) or 1
    rows = [
        [
            f"<code>{escape(each['rule'])}</code>",
            _bar(each["seconds"] / longest),
            _Right(escape(each["module"] or f"{each['seconds'] * 1000:.2f} ms")),
            _Right(_number(each["instances"])),
            _Right(_number(each["facts"])),
            _Right(_number(each["duplicates"])),
            f"<code>{escape(each['slowest_join'])}</code>",
        ]
        for each in ordered
    ]
    names = ["rule", "", "time", "instances", "facts", "duplicates", "slowest join"]
    return _section("Rules", _table(names, rows))


def _bar(share: float) -> str:
    return f'<div class="bar" style="width:{100 * share:.1f}%"></div>'


class _Right(str):
    """A right-aligned cell."""

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


# ----------------------------------------------------------------------------- reports

OK, FAILED = "ok", "failed"


@dataclass(slots=True)
class RunReport:
    """The report of a run, as plain data.

    Attributes:
        run: the name of the run; names are in the order of time.
        place: where it worked, `driver` or `distributed`, and why.
        version: of the state after the run, None if it failed before.
        sources: rows, facts and rejected rows of each, with some of these.
        predicates: facts and explicit facts of each.
        changes: added and removed facts, by predicate.
        work: the algorithm and its cost.
        profile: the cost of each rule, if asked for.
    """

    pipeline: str
    command: str
    run: str
    started: str
    status: str = OK
    seconds: float = 0.0
    engine: str = ""
    place: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    predicates: dict[str, dict[str, int]] = field(default_factory=dict)
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    work: dict[str, Any] = field(default_factory=dict)
    expectations: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    ignored_axioms: dict[str, int] = field(default_factory=dict)
    contradictions: dict[str, Any] = field(default_factory=dict)
    profile: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    def finish(self, steps: Iterable[Step], seconds: float) -> None:
        """Record the steps of the run, and its duration."""
        self.steps = [asdict(step) for step in steps]
        self.seconds = seconds

    def add_source(self, taken: Taken, *, change: str = "") -> None:
        """Record what was read; `change` is `insert` or `delete` for an update."""
        self.sources.append(
            {
                "name": taken.source.name,
                "format": taken.source.format,
                "change": change,
                "rows": taken.rows,
                "facts": dict(taken.counts),
                "rejected": taken.rejected,
                "allowed": str(taken.source.limit),
                "sample": taken.sample.drop_columns(["source"]).to_pylist(),
            }
        )

    def add_change(self, kb: KnowledgeBase, change: Change) -> None:
        """Record the contents of the knowledge base, and the change."""
        self._add_predicates(kb)
        self.changes = {
            name: {"added": added, "removed": removed}
            for name, (added, removed) in change.sizes.items()
        }
        report = change.report
        self.work = {
            "algorithm": report.algorithm,
            "reason": report.reason,
            "rounds": report.rounds,
            "strata": len(report.strata),
            "rules": kb.stats()["rules"],
            "added_rules": report.added_rules,
            "removed_rules": report.removed_rules,
            "seconds": report.seconds,
        }

    def add_profile(self, profile: Profile) -> None:
        """Note what each rule costs."""
        self.profile = [
            {
                "rule": each.rule,
                "seconds": each.seconds,
                "instances": each.instances,
                "facts": each.facts,
                "duplicates": each.duplicates,
                "slowest_join": str(each.slowest_join or ""),
                "module": each.module,
            }
            for each in profile.rules
        ]

    def add_stream(self, kb: KnowledgeBase, report: StreamReport) -> None:
        """Record the work of a stream."""
        self._add_predicates(kb)
        self.sources.append(
            {
                "name": "events",
                "format": "stream",
                "change": "",
                "rows": report.events,
                "facts": {},
                "rejected": report.bad,
                "allowed": "all",
                "sample": [],
            }
        )
        work = asdict(report)
        self.changes = work.pop("changes")
        self.work = work

    def _add_predicates(self, kb: KnowledgeBase) -> None:
        count = kb.stats()["contradictions"]
        shown = kb.contradictions(limit=_SHOWN_CONTRADICTIONS) if count else []
        self.contradictions = {"count": count, "shown": [str(each) for each in shown]}
        self.predicates = {
            name: {"facts": size["facts"], "explicit": size["explicit"]}
            for name, size in kb.stats()["predicates"].items()
        }

    def add_finding(self, finding: Finding) -> None:
        """Record the result of an expectation."""
        self.expectations.append(
            {
                "name": finding.expectation.name,
                "action": finding.expectation.action,
                "is_met": finding.is_met,
                "note": finding.note,
                "answers": finding.answers,
                "sample": finding.sample.to_pylist(),
            }
        )

    def add_output(self, written: Written) -> None:
        """Record an output."""
        self.outputs.append(
            {
                "name": written.output.name,
                "what": written.what,
                "title": _title(written),
                "place": written.place,
                "format": written.output.format,
                "mode": written.output.mode,
                "rows": written.rows,
            }
        )

    def document(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        document: dict[str, Any] = redacted_values(asdict(self))
        return document


def _title(written: Written) -> str:
    """Return the title of an output; it has several if it has several predicates."""
    output = written.output
    if len(output.predicates) > 1:
        return f"{output.name}: {written.what}"
    return output.name


def write_report(report: RunReport, folder: str) -> tuple[str, str]:
    """Write the document and the page; return the paths of both.

    Raises:
        OutputError: the folder cannot be written to.
    """
    document = report.document()
    texts = {
        "json": json.dumps(document, indent=2, ensure_ascii=False),
        "html": page(document),
    }
    with plain_output_errors(folder, "[report]"):
        system, path = file_system(folder)
        system.create_dir(path, recursive=True)
        for suffix, text in texts.items():
            with system.open_output_stream(f"{path}/{report.run}.{suffix}") as sink:
                sink.write(text.encode())
    return f"{folder}/{report.run}.json", f"{folder}/{report.run}.html"


def read_reports(folder: str, limit: int) -> list[Mapping[str, Any]]:
    """Return the last reports in a folder, the newest first.

    Incomplete reports of killed runs are skipped.
    """
    system, path = file_system(folder)
    selector = arrow_fs.FileSelector(path, allow_not_found=True)
    names = sorted(
        info.path
        for info in system.get_file_info(selector)
        if info.path.endswith(".json")
    )
    found: list[Mapping[str, Any]] = []
    for name in names[::-1]:
        if len(found) == limit:
            break
        with system.open_input_file(name) as stream, suppress(ValueError):
            found.append(json.loads(stream.read()))
    return found


# ------------------------------------------------------------------------------ status

_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a pipeline.

    Attributes:
        version: the newest version, None if there is none.
        versions: all versions, the newest first: number, time, and the numbers of added
            and removed facts.
        predicates: facts and explicit facts of each, after the last successful run.
    """

    version: int | None = None
    versions: list[dict[str, object]] = field(default_factory=list)
    predicates: dict[str, dict[str, int]] = field(default_factory=dict)


def read_status(config: Config) -> Status:
    """Read the log of the state and the reports of the runs."""
    versions = [
        {
            "version": each.number,
            "time": each.time.isoformat(timespec="seconds"),
            "added": sum(each.added.values()),
            "removed": sum(each.removed.values()),
        }
        for each in state_versions(config)[::-1]
        if each.is_update
    ]
    reports = read_reports(config.reports, _LOOKED_AT)
    last = next((report for report in reports if report["status"] == OK), None)
    newest = versions[0]["version"] if versions else None
    return Status(
        version=newest if isinstance(newest, int) else None,
        versions=versions,
        predicates={} if last is None else _sizes(last["predicates"]),
    )


def _sizes(stored: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return sizes of predicates in a stored report; older versions wrote `given`."""
    return {
        name: {("explicit" if key == "given" else key): n for key, n in sizes.items()}
        for name, sizes in stored.items()
    }
