"""The program of a pipeline: rule files, ontologies and rules in the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.kb import requests
from evermat.kb.inputs import fact_tables, read_rules
from evermat.lang.catalogue import Catalogue
from evermat.lang.checks import require_valid
from evermat.lang.normalise import normal_rules
from evermat.rdf.ontology import read_ontology
from evermat.runtime.input_limits import allowing

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.algebra import Engine
    from evermat.kb.inputs import RuleInput
    from evermat.lake import Version
    from evermat.lake.state import LakeState
    from evermat.lake.table import StateTable
    from evermat.lang.syntax import Program, Rule
    from evermat.maintenance.limits import Progress
    from evermat.pipeline.config import Config
    from evermat.pipeline.intake import Taken
    from evermat.results.change import Change


# ------------------------------------------------------------------------- the program


@dataclass(frozen=True, slots=True)
class PipelineProgram:
    """Rules, and the facts among them.

    Attributes:
        program: the program without facts.
        facts: the facts of the program itself, by predicate.
        ignored: axioms of ontologies that are not translated to rules, with their
            number.
    """

    program: Program
    facts: Mapping[str, pa.Table]
    ignored: Mapping[str, int]


def read_pipeline_program(config: Config) -> PipelineProgram:
    """Read all rules of a pipeline.

    Raises:
        EvermatError: a file cannot be read, or is not a program.
    """
    texts: list[RuleInput] = [*config.rules]
    if config.text:
        texts.append(config.text)
    with allowing([config.file.parent, *config.allow_paths]):
        read = read_rules(texts)
    program = read.program
    ignored: dict[str, int] = {}
    for path in config.ontologies:
        ontology = read_ontology(path)
        program = program + ontology.program
        for name, count in ontology.ignored_counts.items():
            ignored[name] = ignored.get(name, 0) + count
    require_valid(program)
    # A rule without a body is a fact, whatever its syntax.
    bodiless = [rule for rule in program.rules if not rule.body]
    heads = [head for rule in bodiless for head in rule.heads]
    declared = Catalogue().extended(program.declarations)
    facts = fact_tables(
        {name: list(tables) for name, tables in read.tables.items()},
        [*program.facts, *heads],
        declared,
    )
    rules = tuple(rule for rule in program.rules if rule.body)
    return PipelineProgram(
        replace(program, rules=rules, facts=(), sources=()), facts, ignored
    )


# ------------------------------------------------------------------ the knowledge base


def open_knowledge_base(
    config: Config,
    engine: str | Engine,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> KnowledgeBase:
    """Open the knowledge base in the state of a pipeline, or create an empty one.

    Without a [state], everything is in memory and starts empty each time.
    """
    settings = config.engine
    if config.state is not None and state_versions(config):
        return KnowledgeBase.open(
            config.state,
            engine=engine,
            algorithm=settings.algorithm,
            spark=spark,
            progress=progress,
            contradictions=settings.contradictions,
            storage_options=_options(config),
        )
    return KnowledgeBase(
        engine=engine,
        algorithm=settings.algorithm,
        equality=settings.equality,
        spark=spark,
        progress=progress,
        contradictions=settings.contradictions,
        state=config.state,
        storage_options=_options(config),
    )


def _options(config: Config) -> dict[str, str] | None:
    return dict(config.state_options) or None


def state_versions(config: Config) -> list[Version]:
    """Return the versions of the state, the oldest first; none if there is no state."""
    if config.state is None:
        return []
    history, table = _lake()
    options = _options(config)
    if table.open(config.state, options=options) is None:
        return []
    return history(config.state, storage_options=options)


def stored_state(config: Config) -> LakeState | None:
    """Return the state of a pipeline, without reading facts, if there is one."""
    if config.state is None or not state_versions(config):
        return None
    from evermat.lake.state import open_state  # noqa: PLC0415  needs a library

    return open_state(config.state, options=_options(config))


def _lake() -> tuple[Callable[..., list[Version]], type[StateTable]]:
    """Import the reader of states, which needs an optional library."""
    from evermat.lake import history  # noqa: PLC0415
    from evermat.lake.table import StateTable  # noqa: PLC0415

    return history, StateTable


def lake_state(kb: KnowledgeBase) -> LakeState | None:
    """Return the state of a knowledge base; None if there is none."""
    return kb._lake_state  # noqa: SLF001  users need no more than its place


def jobs_of(kb: KnowledgeBase) -> int:
    """Return the number of Spark jobs of a knowledge base."""
    cluster = getattr(kb._engine, "cluster", None)  # noqa: SLF001  it says no more
    return 0 if cluster is None else int(cluster.jobs)


def save_snapshot(kb: KnowledgeBase) -> None:
    """Make the next opening of the state fast, if it has several new versions."""
    state = lake_state(kb)
    if state is not None:
        state.save(kb._engine, is_last=True)  # noqa: SLF001  users need not do it


def version_of(kb: KnowledgeBase) -> int:
    """Return the version of the state; without one, every run is the first."""
    return 1 if kb.version is None else kb.version


# ---------------------------------------------------------------------------- requests

# Requests of a run to the knowledge base: insertions and deletions of facts and rules.
#
# A source that is read as a whole replaces the explicit facts. Sources with `update`
# provide insertions and deletions.


@dataclass(slots=True)
class RowChanges:
    """The contents of the change files of sources; see `pipeline.change_files`.

    Attributes:
        insert, delete: facts in parts, by predicate; deletions come first.
        applied: the change files, by source.
    """

    insert: dict[str, list[object]] = field(default_factory=dict)
    delete: dict[str, list[object]] = field(default_factory=dict)
    applied: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, facts: Mapping[str, object]) -> None:
        """Add rows of one kind."""
        side = self.insert if kind == "insert" else self.delete
        for name, rows in facts.items():
            side.setdefault(name, []).append(rows)


@dataclass(slots=True)
class Request:
    """The contents of a transaction; facts in parts, by predicate.

    Attributes:
        applied: the files that it applies, for the ledgers of the state.
        is_anew: whether these ledgers start empty.
    """

    insert: dict[str, list[object]] = field(default_factory=dict)
    delete: dict[str, list[object]] = field(default_factory=dict)
    add_rules: Program | None = None
    remove_rules: list[Rule] = field(default_factory=list)
    applied: Mapping[str, list[str]] = field(default_factory=dict)
    is_anew: bool = False

    def carried_out(self, kb: KnowledgeBase) -> Change:
        """Apply the request to a knowledge base, in one transaction."""
        state = lake_state(kb)
        if state is not None:
            state.enter(self.applied, anew=self.is_anew)
        with kb.transaction() as transaction:
            for name, parts in self.insert.items():
                for part in parts:
                    transaction.insert(name, part)
            for name, parts in self.delete.items():
                for part in parts:
                    transaction.delete(name, part)
            if self.add_rules is not None:
                transaction.add_rules(self.add_rules)
            transaction.remove_rules(self.remove_rules)
        return transaction.change

    def planned(self, kb: KnowledgeBase) -> Change:
        """Return what it would change in a knowledge base, which is not changed."""
        rules: list[RuleInput] = [] if self.add_rules is None else [self.add_rules]
        asked = requests.Request(
            insert=self.insert,
            delete=self.delete,
            add_rules=rules,
            remove_rules=list(self.remove_rules),
        )
        return kb._session.plan(asked)  # noqa: SLF001  `plan` takes one piece each


def first_request(program: PipelineProgram, taken: Iterable[Taken]) -> Request:
    """Return the request with everything, for an empty knowledge base."""
    pieces = _pieces([*taken], program.facts)
    return Request(insert=pieces, add_rules=program.program)


def next_request(
    kb: KnowledgeBase,
    program: PipelineProgram,
    whole: Sequence[Taken],
    *,
    changes: RowChanges | None = None,
    told: Collection[str] | None = None,
) -> Request:
    """Return the request that makes the knowledge base equal to the sources.

    A source that was read as a whole replaces the explicit facts: all of them are
    deleted, and all that was read is inserted. An update deletes first, and determines
    the net changes itself, where the facts are.

    Args:
        kb: the knowledge base.
        program: the intended rules and facts.
        whole: sources that were read as a whole.
        changes: rows of change files.
        told: predicates of sources with change files, even without any changes; None if
            all sources are among `whole`, so that facts of other predicates are
            deleted.
    """
    request = Request(is_anew=told is None)
    request.add_rules, request.remove_rules = _rule_changes(kb, program.program)
    is_complete = told is None
    facts = {
        name: rows for name, rows in program.facts.items() if name not in (told or ())
    }
    request.insert = _pieces(whole, facts)
    for name, sizes in kb.stats()["predicates"].items():
        if sizes["explicit"] and (is_complete or name in request.insert):
            request.delete[name] = [kb.facts(name, "explicit")]
    if changes is None:
        return request
    known = kb.predicates
    for name, parts in changes.insert.items():
        request.insert.setdefault(name, []).extend(parts)
    for name, parts in changes.delete.items():
        if name in known:
            request.delete.setdefault(name, []).extend(parts)
    request.applied = changes.applied
    return request


def _pieces(
    taken: Sequence[Taken], facts: Mapping[str, pa.Table]
) -> dict[str, list[object]]:
    pieces: dict[str, list[object]] = {}
    for each in taken:
        for name, rows in each.facts.items():
            pieces.setdefault(name, []).append(rows)
    for name, table in facts.items():
        pieces.setdefault(name, []).append(table)
    return pieces


def _rule_changes(
    kb: KnowledgeBase, program: Program
) -> tuple[Program | None, list[Rule]]:
    """Return the rules that are new, and those that were removed."""
    old = {_meaning(rule): rule for rule in kb.rules}
    new = {_meaning(rule): rule for rule in _single_heads(program.rules)}
    added = tuple(rule for key, rule in new.items() if key not in old)
    removed = [rule for key, rule in old.items() if key not in new]
    return (replace(program, rules=added) if added else None), removed


def _meaning(rule: Rule) -> frozenset[Hashable]:
    """Return a key that is equal for rules with the same meaning."""
    return frozenset(normal_rules([rule]))


def _single_heads(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield rules in the form of `KnowledgeBase.rules`: one for each head."""
    for rule in rules:
        for head in rule.heads:
            yield replace(rule, heads=(head,))
