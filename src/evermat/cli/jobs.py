"""What a command line asks for, and the knowledge base that it is about."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.catalogue import Catalogue
from evermat.cli.facts import FactReader, UnusedFactsWarning
from evermat.cli.output import seconds
from evermat.cli.programs import Syntax, read_program, says_what_to_read
from evermat.cli.progress import ProgressLine
from evermat.fact_tables import together
from evermat.lang.normalise import rule_key
from evermat.lang.syntax import Program
from evermat.maintenance.rule_book import single_heads
from evermat.rule_inputs import read_rules
from evermat.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.cli.output import Output
    from evermat.lang.syntax import Rule
    from evermat.maintenance.watch import Budget


@dataclass(frozen=True, slots=True)
class Job:
    """What a command line asks for.

    Attributes:
        rules: their file; None if the rules are those of a store.
        store: where the materialisation is kept.
        at: a version of the store.
    """

    rules: Path | None = None
    store: str | None = None
    at: int | None = None
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
    if job.rules is None:
        return _open(job)
    folders = [Path(place) for place in job.facts if Path(place).is_dir()]
    program = read_program(job.rules, job.syntax, folders=folders)
    reader = FactReader(
        Catalogue().extended(program.declarations), header=job.header, base=job.base
    )
    progress = ProgressLine()
    with progress.during("starting"):
        kb = KnowledgeBase(
            engine=job.engine,
            algorithm=job.algorithm,
            budget=job.budget,
            progress=progress,
            state=job.store,
        )
    start = perf_counter()
    with progress.during("reading facts"):
        data = _facts(job, job.rules, program, reader)
    read = perf_counter()
    program = replace(program, sources=())
    with progress.during("materialising"):
        kb.update(insert=data, add_rules=program, remove_rules=_superseded(kb, program))
    done = perf_counter()
    stats = kb.stats()
    output.say(
        f"read {counted(sum(table.num_rows for table in data.values()), 'fact')} "
        f"in {seconds(read - start)}"
    )
    output.say(
        f"materialised {counted(stats['facts'], 'fact')} "
        f"with {counted(stats['rules'], 'rule')} "
        f"in {stats['strata']} {'stratum' if stats['strata'] == 1 else 'strata'} "
        f"in {seconds(done - read)}"
    )
    _warn_of_unused(reader, kb, question)
    output.document["seconds"] = {"read": read - start, "materialise": done - read}
    return Loaded(kb, program, reader, progress)


def _open(job: Job) -> Loaded:
    """Take up what is kept in a store."""
    assert job.store is not None  # noqa: S101  rules come from somewhere
    progress = ProgressLine()
    with progress.during("opening"):
        kb = KnowledgeBase.open(
            job.store,
            version=job.at,
            engine=job.engine,
            algorithm=job.algorithm,
            budget=job.budget,
            progress=progress,
        )
    reader = FactReader(kb.catalogue, header=job.header, base=job.base)
    return Loaded(kb, Program(), reader, progress)


def _superseded(kb: KnowledgeBase, program: Program) -> list[Rule]:
    """The rules that a store has and a program has not."""
    if not kb.rules:
        return []
    wanted = {rule_key(rule) for rule in single_heads(program.rules)}
    return [rule for rule in kb.rules if rule_key(rule) not in wanted]


def _facts(
    job: Job, rules: Path, program: Program, reader: FactReader
) -> dict[str, pa.Table]:
    """The facts that the program imports, and those of the command line."""
    places = job.facts
    if says_what_to_read(rules, job.syntax):
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
