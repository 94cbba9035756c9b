"""What a run did: one JSON document and one page for each run."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.fs as arrow_fs

from evermat.pipeline.files import file_system
from evermat.pipeline.page import page
from evermat.pipeline.problems import plain_output_errors
from evermat.redaction import redacted_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.api import KnowledgeBase
    from evermat.pipeline.intake import Taken
    from evermat.pipeline.outputs import Written
    from evermat.pipeline.steps import Step
    from evermat.pipeline.stream import StreamReport
    from evermat.results.change import Change

OK, FAILED = "ok", "failed"


@dataclass(slots=True)
class RunReport:
    """Everything there is to tell of a run; plain data.

    Attributes:
        run: the name of the run, which is in order of time.
        version: of the state after the run, None if it failed before.
        sources: rows, facts and rejected rows of each, with some of these.
        predicates: facts and given facts of each.
        changes: facts that came and left, by predicate.
        work: the algorithm and what it cost.
    """

    pipeline: str
    command: str
    run: str
    started: str
    status: str = OK
    seconds: float = 0.0
    engine: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    predicates: dict[str, dict[str, int]] = field(default_factory=dict)
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    work: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    ignored_axioms: dict[str, int] = field(default_factory=dict)
    error: str | None = None

    def finish(self, steps: Iterable[Step], seconds: float) -> None:
        """Note the steps of the run, and how long it took."""
        self.steps = [asdict(step) for step in steps]
        self.seconds = seconds

    def add_source(self, taken: Taken, *, change: str = "") -> None:
        """Note what was read; `change` is `insert` or `delete` for an update."""
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
        """Note what the knowledge base holds now and what changed."""
        self._add_predicates(kb)
        self.changes = {
            name: {"added": came, "removed": left}
            for name, (came, left) in change.sizes.items()
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

    def add_stream(self, kb: KnowledgeBase, report: StreamReport) -> None:
        """Note what a stream did."""
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
        self.predicates = {
            name: {"facts": size["facts"], "given": size["given"]}
            for name, size in kb.stats()["predicates"].items()
        }

    def add_output(self, written: Written) -> None:
        """Note an output."""
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
        """The report as JSON values."""
        document: dict[str, Any] = redacted_values(asdict(self))
        return document


def _title(written: Written) -> str:
    """How people call it: an output of several predicates is written once for each."""
    output = written.output
    if len(output.predicates) > 1:
        return f"{output.name}: {written.what}"
    return output.name


def write_report(report: RunReport, folder: str) -> tuple[str, str]:
    """Write the document and the page; the paths of both.

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
    """The last reports in a folder, the newest first.

    A report that was cut off, because a run was killed, is passed over.
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
