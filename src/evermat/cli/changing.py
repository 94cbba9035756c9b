"""Updates on the command line: applied in order, shown, and summarised in one table."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.cli.output import json_rows, seconds, sizes
from evermat.cli.updates import read_update
from evermat.errors import EvermatError
from evermat.lang.printer import Printer
from evermat.lang.syntax import Atom, Term

if TYPE_CHECKING:
    from evermat.api import KnowledgeBase
    from evermat.cli.jobs import Job, Loaded
    from evermat.cli.output import Cell, Output
    from evermat.cli.updates import UpdateFile
    from evermat.maintenance.update import Report
    from evermat.results.change import Change


def apply_updates(
    job: Job, loaded: Loaded, output: Output, first: UpdateFile | None = None
) -> None:
    """Apply updates one after the other, and report changes and costs.

    Args:
        job: has the files of updates.
        loaded: the knowledge base to change.
        output: receives the reports.
        first: an update that comes before those of files.
    """
    printer = Printer(dict(loaded.program.prefixes))
    reports: list[list[Cell]] = []
    documents = []
    updates: list[UpdateFile | Path] = [*([first] if first else []), *job.updates]
    for each in updates:
        try:
            update = each
            if isinstance(update, Path):
                update = read_update(update, loaded.reader)
            with loaded.progress.during(update.title):
                change = _apply(job, loaded.kb, update)
        except EvermatError as error:
            if isinstance(each, Path):
                error.add_note(f" = update: {each}, which changed nothing")
            raise
        _show_change(update.title, change, job.show, printer, output)
        reports.append(_report_row(update.name, change))
        documents.append(_change_document(update.title, change, job.show))
    title = "updates that would be made" if job.is_dry_run else "updates"
    columns = ["update", "algorithm", "inserted", "deleted", "added", "removed"]
    columns += ["rounds", "instances", "time"]
    output.heading(title)
    output.table(columns, reports)
    output.document["updates"] = documents
    if not job.is_dry_run:
        tell_version(loaded.kb, output)


def tell_version(kb: KnowledgeBase, output: Output) -> None:
    """Print the version and the place of the state, if there is one."""
    if kb.state is not None:
        output.say(f"kept as version {kb.version} of {kb.state}")
        output.document["version"] = kb.version


def _apply(job: Job, kb: KnowledgeBase, update: UpdateFile) -> Change:
    carry_out = kb.plan if job.is_dry_run else kb.update
    return carry_out(
        insert=update.insert,
        delete=update.delete,
        replace=update.replace,
        add_rules=update.add_rules,
        remove_rules=update.remove_rules,
        algorithm=update.algorithm,
    )


def _show_change(
    title: str, change: Change, show: int, printer: Printer, output: Output
) -> None:
    report = change.report
    output.heading(title)
    why = f" ({report.reason})" if report.reason else ""
    output.say(f"{report.algorithm}{why} in {seconds(report.seconds)}")
    work = _strata_of(report)
    if work:
        output.say(f"strata: {work}")
    output.table(["predicate", "added", "removed"], sizes(change.sizes))
    if not show:
        return
    for name in change.predicates:
        for sign, result in (("+", change.added(name)), ("-", change.removed(name))):
            for row in result.first(show).constants():
                # In the syntax that `evermat explain` reads.
                fact = Atom(name, tuple(map(Term, row)))
                output.say(f"  {sign} {printer.atom(fact)}")
            if len(result) > show:
                output.say(f"  {sign} … {len(result) - show:,} more of {name}")


def _strata_of(report: Report) -> str:
    """Return how many strata were maintained by which algorithm."""
    ways = Counter(
        (stratum.algorithm, stratum.path) for stratum in report.strata if stratum.rounds
    )
    return ", ".join(
        f"{number} by {algorithm or report.algorithm} ({path})"
        for (algorithm, path), number in sorted(ways.items())
    )


def _report_row(name: str, change: Change) -> list[Cell]:
    report = change.report
    added, removed = change.total
    return [
        name,
        report.algorithm,
        report.inserted,
        report.deleted,
        added,
        removed,
        report.rounds,
        report.forward_instances + report.backward_instances,
        report.seconds,
    ]


def _change_document(title: str, change: Change, show: int) -> dict[str, object]:
    document: dict[str, object] = {
        "title": title,
        "applied": change.applied,
        "predicates": {
            name: {"added": added, "removed": removed}
            for name, (added, removed) in change.sizes.items()
        },
        "report": asdict(change.report)
        | {
            "strata": [
                asdict(stratum) | {"path": stratum.path}
                for stratum in change.report.strata
            ]
        },
    }
    if show:
        document["rows"] = {
            name: {
                "added": json_rows(change.added(name), show),
                "removed": json_rows(change.removed(name), show),
            }
            for name in change.predicates
        }
    return document
