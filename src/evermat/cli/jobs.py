"""The request of a command line, and the knowledge base for it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.api import KnowledgeBase
from evermat.cli.checking import Syntax, read_program, says_what_to_read, warn
from evermat.cli.facts import FactReader, UnusedFactsWarning
from evermat.cli.output import ProgressLine, seconds
from evermat.errors.wording import counted
from evermat.io.files import require_folder
from evermat.kb.inputs import read_rules, together
from evermat.kb.program_files import require_sinks
from evermat.lang.catalogue import Catalogue
from evermat.lang.parser import parse_query
from evermat.lang.syntax import TRIPLE, Declaration, Program, rule_key
from evermat.maintenance.rules import single_heads

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from evermat.cli.output import Output
    from evermat.kb.contradictions import Policy
    from evermat.lang.syntax import Rule
    from evermat.maintenance.limits import Budget


@dataclass(frozen=True, slots=True)
class Job:
    """The request of a command line.

    Attributes:
        rules: their file; None for the rules of a store.
        store: the place of the materialisation.
        at: a version of the store.
    """

    rules: Path | None = None
    store: str | None = None
    at: int | None = None
    facts: list[str] = field(default_factory=list)
    updates: list[Path] = field(default_factory=list)
    out: Path | None = None
    database: str | None = None
    form: str = "csv"
    show: int = 0
    engine: str = "embedded"
    algorithm: str = "auto"
    syntax: Syntax = Syntax.AUTO
    header: bool | None = None
    base: str | None = None
    is_dry_run: bool = False
    is_profiled: bool = False
    budget: Budget | None = None
    allow_paths: list[Path] = field(default_factory=list)
    contradictions: Policy = "ignore"

    def places(self) -> list[Path]:
        """Return the folders in which rules and updates may name files."""
        given = [*self.updates, *map(_fact_path, self.facts)]
        if self.rules is not None:
            given.append(self.rules)
        folders = [path if path.is_dir() else path.parent for path in given]
        return [*folders, *self.allow_paths]


def _fact_path(place: str) -> Path:
    """Return the path in `predicate=file`, or a path as it is."""
    _, equals, rest = place.partition("=")
    return Path(rest if equals and not Path(place).exists() else place)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program and its materialised facts."""

    kb: KnowledgeBase
    program: Program
    reader: FactReader
    progress: ProgressLine


def load(job: Job, output: Output, *, question: str = "") -> Loaded:
    """Read everything and materialise; `question` is the query to come.

    Errors that can be found early are raised first: unwritable outputs, and syntax
    errors in the query.
    """
    if job.rules is None:
        return _open(job)
    folders = [Path(place) for place in job.facts if Path(place).is_dir()]
    program = read_program(job.rules, job.syntax, folders=folders)
    if job.out is not None:
        require_folder(job.out)
        require_sinks(program, job.out)
    if question:
        parse_query(question, prefixes=dict(program.prefixes))
    catalogue = Catalogue().extended(_predicates(program))
    reader = FactReader(
        catalogue, header=job.header, base=job.base, rules=lambda: program.rules
    )
    progress = ProgressLine()
    with progress.during("starting"):
        kb = KnowledgeBase(
            engine=job.engine,
            algorithm=job.algorithm,
            budget=job.budget,
            progress=progress,
            state=job.store,
            contradictions=job.contradictions,
        )
    start = perf_counter()
    with progress.during("reading facts"):
        data = _facts(job, job.rules, program, reader)
    read = perf_counter()
    program = replace(program, sources=())
    was_kept = set(kb.predicates)
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
    warn_of_unused(reader, kb, question)
    warn(program, _with_kept(kb, data) if was_kept else data)
    output.document["seconds"] = {"read": read - start, "materialise": done - read}
    return Loaded(kb, program, reader, progress)


_MOST_KEPT = 1_000_000
"""Facts of a predicate whose kinds are looked up in a state."""


def _with_kept(kb: KnowledgeBase, data: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return facts of files with the earlier facts of a state, for warnings."""
    found = dict(data)
    for name in kb.predicates:
        if name != TRIPLE and kb.count(name) <= _MOST_KEPT:
            found[name] = kb.facts(name, "explicit").to_terms()
        elif name in found:
            # A column of nulls may have constants of all kinds.
            columns = found[name].column_names
            found[name] = pa.table({each: pa.nulls(1) for each in columns})
    return {name: table for name, table in found.items() if table.num_rows}


def _open(job: Job) -> Loaded:
    """Open the knowledge base in a store."""
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
            contradictions=job.contradictions,
        )
    reader = FactReader(
        kb.catalogue, header=job.header, base=job.base, rules=lambda: kb.rules
    )
    return Loaded(kb, Program(), reader, progress)


def _superseded(kb: KnowledgeBase, program: Program) -> list[Rule]:
    """Return the rules of a store that a program lacks."""
    if not kb.rules:
        return []
    wanted = {rule_key(rule) for rule in single_heads(program.rules)}
    return [rule for rule in kb.rules if rule_key(rule) not in wanted]


def _facts(
    job: Job, rules: Path, program: Program, reader: FactReader
) -> dict[str, pa.Table]:
    """Return the facts that the program imports, and those of the command line."""
    places = job.facts
    if says_what_to_read(rules, job.syntax):
        # In folders, the program finds its own files; others are ignored.
        places = [place for place in places if not Path(place).is_dir()]
    tables = {name: list(parts) for name, parts in read_rules([program]).tables.items()}
    for name, table in reader.read(places, without=tables).items():
        tables.setdefault(name, []).append(table)
    return {name: together(name, parts) for name, parts in tables.items()}


def _predicates(program: Program) -> Iterator[Declaration]:
    """Yield the declarations of a program, or else the arities of its predicates."""
    yield from program.declarations
    for rule in program.rules:
        for atom in rule.atoms():
            yield Declaration(atom.predicate, atom.arity, span=atom.span)


def warn_of_unused(
    reader: FactReader,
    kb: KnowledgeBase,
    question: str = "",
    *,
    known: Container[str] = (),
) -> None:
    """Warn of files whose facts no rule uses, which often have a wrong name.

    Args:
        reader: has read the files.
        kb: has the rules.
        question: the query to come, which may use such facts.
        known: predicates that had facts before.
    """
    used = {atom.predicate for rule in kb.rules for atom in rule.atoms()}
    for name, path in reader.single_files.items():
        if name not in used and name not in question and name not in known:
            warnings.warn(UnusedFactsWarning(name, path, used), stacklevel=2)
