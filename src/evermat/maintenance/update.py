"""Updates: requests, their effective changes, reports and outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from evermat.algebra import Views
from evermat.algebra.compile import compile_rules
from evermat.errors import EvermatError
from evermat.lang.syntax import Atom, Rule, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra import Engine, Facts, SettledFacts, Snapshot
    from evermat.algebra.equality import Representatives
    from evermat.maintenance.rules import RuleChange


@dataclass(frozen=True, slots=True)
class Ignored:
    """Numbers of requested changes without effect.

    Attributes:
        deletions: rows to delete that were not explicit, or are also inserted.
        insertions: rows to insert that were explicit already.
        rules: rules to add that the program already had.
    """

    deletions: int = 0
    insertions: int = 0
    rules: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """The effective changes of one request.

    Attributes:
        deletions: E⁻, facts that are no longer explicit.
        insertions: E⁺, facts that become explicit.
        removed_rules: normal rules that the program loses.
        added_rules: normal rules that the program gains.
        ignored: the numbers of requested changes without effect.
    """

    deletions: SettledFacts
    insertions: SettledFacts
    removed_rules: tuple[Rule, ...] = ()
    added_rules: tuple[Rule, ...] = ()
    ignored: Ignored = field(default_factory=Ignored)

    def is_empty(self) -> bool:
        """Return whether the update changes neither an explicit fact nor a rule."""
        return (
            self.deletions.is_empty()
            and self.insertions.is_empty()
            and not self.removed_rules
            and not self.added_rules
        )


@dataclass(slots=True)
class StratumReport:
    """The work of an update in one stratum.

    Attributes:
        index: the number of the stratum, from 1; 0 for facts of no stratum.
        algorithm: the name of the algorithm that maintained it; `dred-c + modules` and
            the like if modules were used, whatever was requested. Facts of no stratum
            need none.
        rounds: the number of times rules were applied to new facts.
        forward_instances: rule instances matched from body to head.
        backward_instances: rule instances matched from head to body. When facts are
            only tested for derivations, small batches stop at the first instance of
            each fact, and large ones match all instances of a rule at once.
        overdeleted: facts that were deleted, perhaps only temporarily.
        rederived: overdeleted facts that one step derives again.
        proved: facts for which a surviving derivation was found before deleting.
        inserted: facts that were added, rederived ones included.
        compiled_rounds: the rounds that compiled code ran without returning in between.
        compiled_searches: the searches for proofs that compiled code made.
        seconds: the time by phase.
    """

    index: int
    rounds: int = 0
    forward_instances: int = 0
    backward_instances: int = 0
    overdeleted: int = 0
    rederived: int = 0
    proved: int = 0
    inserted: int = 0
    compiled_rounds: int = 0
    compiled_searches: int = 0
    algorithm: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """How it was done: `compiled`, or `batched`, operator by operator; or `mixed`.

        Empty if there was nothing to do.
        """
        is_compiled = self.compiled_rounds > 0 or self.compiled_searches > 0
        is_batched = self.rounds > self.compiled_rounds
        if is_compiled:
            return "mixed" if is_batched else "compiled"
        return "batched" if is_batched else ""


@dataclass(frozen=True, slots=True)
class Report:
    """The work of an update, and its cost.

    Attributes:
        algorithm: the algorithm that produced the result.
        reason: the reason for choosing it.
        strata: one report for each stratum that the update touched.
        deleted, inserted: the numbers of facts that ceased to be explicit, and that
            became so.
        removed, added: the net changes of stored facts, including those of auxiliary
            predicates; facts that differ only in equal constants count once.
        ignored: requested changes without effect.
        removed_rules, added_rules: the numbers of rules the program lost and gained.
        seconds: the time for the whole update.
    """

    algorithm: str
    reason: str = ""
    strata: tuple[StratumReport, ...] = ()
    deleted: int = 0
    inserted: int = 0
    removed: int = 0
    added: int = 0
    ignored: Ignored = field(default_factory=Ignored)
    removed_rules: int = 0
    added_rules: int = 0
    seconds: float = 0.0

    @property
    def forward_instances(self) -> int:
        """The number of rule instances matched forwards, in all strata."""
        return sum(stratum.forward_instances for stratum in self.strata)

    @property
    def backward_instances(self) -> int:
        """The number of rule instances matched backwards, in all strata."""
        return sum(stratum.backward_instances for stratum in self.strata)

    @property
    def rounds(self) -> int:
        """The number of rounds, in all strata."""
        return sum(stratum.rounds for stratum in self.strata)


@dataclass(frozen=True, slots=True, eq=False)
class CliqueChange:
    """The change of an update in terms of representatives.

    Attributes:
        before, after: the cliques before and after the update.
        lost: facts that were removed.
        gained: facts that were added.
        stayed: other facts, if any, that represent different facts than before.
    """

    before: Representatives
    after: Representatives
    lost: Snapshot
    gained: Snapshot
    stayed: Snapshot | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The exact net change of an update, with its report.

    Attributes:
        removed: facts that held before and do not hold now.
        added: facts that hold now and did not before.
        explicit_removed: facts that were explicit before and are not now.
        explicit_added: facts that are explicit now and were not before.
        summary: the report, with the numbers of stored facts.
        cliques: the change of representatives, if equality is rewritten.
    """

    removed: Snapshot
    added: Snapshot
    explicit_removed: Snapshot
    explicit_added: Snapshot
    summary: Report
    cliques: CliqueChange | None = None

    @property
    def report(self) -> Report:
        """The report; facts that are not stored are counted on access."""
        return replace(
            self.summary,
            removed=sum(self.removed.relations().values()),
            added=sum(self.added.relations().values()),
        )


# ----------------------------------------------------------------------------- requests


class UnknownRelationError(EvermatError, LookupError):
    """Rows were to be deleted from an unknown relation.

    Attributes:
        relation: its name.
    """

    code: ClassVar[str] = "EM514"

    def __init__(self, relation: str) -> None:
        self.relation = relation
        super().__init__(
            f"there is nothing to delete from: no fact or rule mentions `{relation}`",
            help="check the name",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One update as it was requested.

    Attributes:
        delete, insert: rows by relation.
        remove_rules, add_rules: the changes of the program.
        replace: relations whose explicit facts are replaced by the inserted rows.
    """

    delete: Mapping[str, pa.Table]
    insert: Mapping[str, pa.Table]
    remove_rules: Iterable[Rule] = ()
    add_rules: Iterable[Rule] = ()
    replace: frozenset[str] = frozenset()


def declare(engine: Engine, request: Request, rules: Iterable[Rule]) -> None:
    """Declare the relations of rules and rows, and check their arities.

    Raises:
        UnknownRelationError: rows to delete from an unknown relation.
        ArityMismatchError: rows or atoms with a wrong number of columns.
    """
    declare_rules(engine, rules)
    known = engine.relations()
    for relation in request.delete:
        if relation not in known and relation not in request.insert:
            raise UnknownRelationError(relation)
    for tables in (request.delete, request.insert):
        for relation, table in tables.items():
            if known.get(relation) != table.num_columns:
                engine.declare(relation, table.num_columns)


def declare_rules(engine: Engine, rules: Iterable[Rule]) -> None:
    """Declare the relations of rules."""
    for rule in rules:
        for atom in rule.atoms():
            engine.declare(atom.predicate, atom.arity)


def read_request(
    engine: Engine,
    request: Request,
    change: RuleChange,
    explicit_among: Callable[[Facts], SettledFacts],
) -> Update:
    """Return the effective changes: E⁻ := (E⁻ ∩ E) ∖ E⁺ and E⁺ := E⁺ ∖ E.

    Args:
        engine: the engine.
        request: rows to delete and to insert.
        change: the change of the rules.
        explicit_among: returns those of some facts that are explicit.
    """
    wanted = _read(engine, request.insert, known=False)
    unwanted = _read(engine, request.delete, known=True)
    deletions, insertions = unwanted, wanted
    if not unwanted.is_empty():
        deletions = engine.settle(explicit_among(unwanted) - wanted)
    replaced = engine.no_facts()
    if request.replace:
        there = _all_explicit(engine, request.replace)
        replaced = engine.settle(explicit_among(there) - wanted)
    if not wanted.is_empty():
        insertions = engine.settle(wanted - explicit_among(wanted))
    return Update(
        deletions=engine.settle(deletions | replaced) if request.replace else deletions,
        insertions=insertions,
        removed_rules=change.removed,
        added_rules=change.added,
        ignored=Ignored(
            deletions=rows_in(request.delete) - deletions.size(),
            insertions=wanted.size() - insertions.size(),
            rules=change.ignored,
        ),
    )


def _read(
    engine: Engine, tables: Mapping[str, pa.Table], *, known: bool
) -> SettledFacts:
    """Return the rows of tables as facts; with `known`, only those seen before."""
    filled = {name: table for name, table in tables.items() if table.num_rows}
    return engine.find_all(filled) if known else engine.intern_all(filled)


def _all_explicit(engine: Engine, names: Iterable[str]) -> SettledFacts:
    """Return all explicit facts of relations, by rules that copy: `p(?x) :- p(?x)`.

    Views of stored sets are never settled as such, as the work must be proportional to
    the change. Here it may be proportional to the facts, all of which were passed
    again.
    """
    known = engine.relations()
    rules = []
    for name in names:
        atom = Atom(name, tuple(Variable(f"x{at}") for at in range(known[name])))
        rules.append(Rule((atom,), (atom,)))
    copies = compile_rules(tuple(rules), lambda _rule, _atom: False).full
    return engine.derive(copies, Views(engine.explicit, engine.explicit))


def rows_in(tables: Mapping[str, pa.Table]) -> int:
    """Return the number of rows of some tables."""
    return sum(table.num_rows for table in tables.values())
