"""`evermat run` and `evermat query`: from files to a knowledge base and its news."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.cli.facts import FactReader, UnusedFactsWarning
from evermat.cli.output import Output, count, json_rows, rows_of, seconds, sizes
from evermat.cli.programs import Syntax, read_program, says_what_to_read
from evermat.cli.progress import ProgressLine
from evermat.cli.updates import read_update
from evermat.errors import EvermatError
from evermat.fact_tables import together
from evermat.io.files import data_file
from evermat.program_files import write_sinks
from evermat.rule_inputs import read_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.change import Change
    from evermat.cli.output import Cell
    from evermat.cli.updates import UpdateFile
    from evermat.lang.syntax import Program
    from evermat.maintenance.watch import Budget


@dataclass(frozen=True, slots=True)
class Job:
    """What a command line asks for."""

    rules: Path
    facts: list[str] = field(default_factory=list)
    updates: list[Path] = field(default_factory=list)
    out: Path | None = None
    form: str = "csv"
    show: int = 0
    engine: str = "embedded"
    algorithm: str = "auto"
    syntax: Syntax = Syntax.AUTO
    header: bool | None = None
    base: str | None = None
    is_dry_run: bool = False
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program over its facts."""

    kb: KnowledgeBase
    program: Program
    reader: FactReader
    progress: ProgressLine


def load(job: Job, output: Output, *, question: str = "") -> Loaded:
    """Read everything and materialise; `question` is what will be asked."""
    folders = [Path(place) for place in job.facts if Path(place).is_dir()]
    program = read_program(job.rules, job.syntax, folders=folders)
    reader = FactReader(program.declarations, header=job.header, base=job.base)
    progress = ProgressLine()
    with progress.during("starting"):
        kb = KnowledgeBase(
            engine=job.engine,
            algorithm=job.algorithm,
            budget=job.budget,
            progress=progress,
        )
    start = perf_counter()
    with progress.during("reading facts"):
        data = _facts(job, program, reader)
    read = perf_counter()
    with progress.during("materialising"):
        kb.update(insert=data, add_rules=replace(program, sources=()))
    done = perf_counter()
    stats = kb.stats()
    output.say(
        f"read {count(sum(table.num_rows for table in data.values()), 'fact')} "
        f"in {seconds(read - start)}"
    )
    output.say(
        f"materialised {count(stats['facts'], 'fact')} "
        f"with {count(stats['rules'], 'rule')} "
        f"in {stats['strata']} {'stratum' if stats['strata'] == 1 else 'strata'} "
        f"in {seconds(done - read)}"
    )
    _warn_of_unused(reader, kb, question)
    output.document["seconds"] = {"read": read - start, "materialise": done - read}
    return Loaded(kb, program, reader, progress)


def _facts(job: Job, program: Program, reader: FactReader) -> dict[str, pa.Table]:
    """The facts that the program imports, and those of the command line."""
    places = job.facts
    if says_what_to_read(job.rules, job.syntax):
        # Folders are where the program finds its files, whatever else they hold.
        places = [place for place in places if not Path(place).is_dir()]
    tables = {name: list(parts) for name, parts in read_rules([program]).tables.items()}
    for name, table in reader.read(places, without=tables).items():
        tables.setdefault(name, []).append(table)
    return {name: together(name, parts) for name, parts in tables.items()}


def _warn_of_unused(reader: FactReader, kb: KnowledgeBase, question: str) -> None:
    """Facts that no rule uses often stand in a file with the wrong name."""
    used = {
        atom.predicate
        for rule in kb.rules
        for atom in (*rule.heads, *rule.positive_atoms(), *rule.negated_atoms())
    }
    for name, path in reader.single_files.items():
        if name not in used and name not in question:
            warnings.warn(UnusedFactsWarning(name, path), stacklevel=2)


def run_job(job: Job, output: Output) -> None:
    """Materialise, apply the updates, write the outputs."""
    data_file(_output_file(job, "output"))  # a wrong suffix is better known at once
    loaded = load(job, output)
    _show_predicates(loaded.kb, output)
    if job.updates:
        _update(job, loaded, output)
    _write(job, loaded, output)


def answer(
    job: Job, question: str, output: Output, *, limit: int | None, out: Path | None
) -> None:
    """Materialise and answer one question."""
    kb = load(job, Output(is_json=True), question=question).kb
    result = kb.query(question)
    if out is not None:
        result.write(out)
        output.say(f"wrote {count(len(result), 'row')} to {out}")
        return
    output.result(result, limit)


def list_algorithms(output: Output) -> None:
    """A table of the algorithms."""
    from evermat.maintenance.algorithms import DESCRIPTIONS

    rows = [asdict(each) for each in DESCRIPTIONS]
    output.document["algorithms"] = rows
    columns = ["name", "what it is", "best when", "extra memory", "paper"]
    output.table(columns, [list(row.values()) for row in rows])


# ----------------------------------------------------------------------- parts of run


def _show_predicates(kb: KnowledgeBase, output: Output) -> None:
    stats = kb.stats()
    output.document["predicates"] = stats["predicates"]
    rows: list[list[Cell]] = [
        [name, size["facts"], size["given"]]
        for name, size in stats["predicates"].items()
    ]
    output.table(["predicate", "facts", "given"], rows)


def _update(job: Job, loaded: Loaded, output: Output) -> None:
    reports: list[list[Cell]] = []
    documents = []
    for path in job.updates:
        try:
            update = read_update(path, loaded.reader)
            with loaded.progress.during(update.title):
                change = _apply(job, loaded.kb, update)
        except EvermatError as error:
            error.add_note(f" = update: {path}, which changed nothing")
            raise
        _show_change(update.title, change, job.show, output)
        reports.append(_report_row(update.name, change))
        documents.append(_change_document(update.title, change, job.show))
    title = "updates that would be made" if job.is_dry_run else "updates"
    columns = ["update", "algorithm", "given", "withdrawn", "added", "removed"]
    columns += ["rounds", "instances", "time"]
    output.heading(title)
    output.table(columns, reports)
    output.document["updates"] = documents


def _apply(job: Job, kb: KnowledgeBase, update: UpdateFile) -> Change:
    carry_out = kb.plan if job.is_dry_run else kb.update
    return carry_out(
        insert=update.insert,
        delete=update.delete,
        add_rules=update.add_rules,
        remove_rules=update.remove_rules,
        algorithm=update.algorithm,
    )


def _show_change(title: str, change: Change, show: int, output: Output) -> None:
    report = change.report
    output.heading(title)
    why = f" ({report.reason})" if report.reason else ""
    output.say(f"{report.algorithm}{why} in {seconds(report.seconds)}")
    output.table(["predicate", "added", "removed"], sizes(change.sizes))
    if not show:
        return
    for name in change.predicates:
        for sign, result in (("+", change.added(name)), ("-", change.removed(name))):
            for row in rows_of(result, show):
                output.say(f"  {sign} {name}({', '.join(map(str, row))})")
            if len(result) > show:
                output.say(f"  {sign} … {len(result) - show:,} more of {name}")


def _report_row(name: str, change: Change) -> list[Cell]:
    report = change.report
    return [
        name,
        report.algorithm,
        report.inserted,
        report.deleted,
        report.added,
        report.removed,
        report.rounds,
        report.forward_instances + report.backward_instances,
        report.seconds,
    ]


def _change_document(title: str, change: Change, show: int) -> dict[str, object]:
    document: dict[str, object] = {
        "title": title,
        "applied": change.applied,
        "predicates": {
            name: {"added": came, "removed": left}
            for name, (came, left) in change.sizes.items()
        },
        "report": asdict(change.report),
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


def _write(job: Job, loaded: Loaded, output: Output) -> None:
    """Write what the program exports, or else all that it derives."""
    kb, program = loaded.kb, loaded.program
    if job.out is None:
        # Without a folder, only what goes to standard output is wanted.
        printed = tuple(sink for sink in program.sinks if sink.path == "-")
        program = replace(program, sinks=printed)
    stream = sys.stderr if output.is_json else sys.stdout
    folder = job.out or Path()
    files = write_sinks(
        program, lambda name: kb.facts(name).to_terms(), folder, stream=stream
    )
    if job.out is None:
        return
    if not program.sinks:
        for name in sorted({rule.head.predicate for rule in kb.rules}):
            path = _output_file(job, name)
            kb.facts(name).write(path)
            files.append(path)
    output.document["files"] = [str(path) for path in files]
    output.say(f"wrote {count(len(files), 'file')} to {job.out}")


def _output_file(job: Job, predicate: str) -> Path:
    folder = job.out or Path()
    return folder / f"{file_name(predicate)}.{job.form.lstrip('.')}"


def file_name(predicate: str) -> str:
    """A name for the file of a predicate, which may be an IRI."""
    return re.sub(r"[^\w.\-]+", "_", predicate).strip("_") or "facts"
