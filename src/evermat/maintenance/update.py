"""What goes into an update, what it really changes, and what comes out of it.

What goes into an update, what comes out of it, and what it did on the way.

Requests for updates, as they come in, and what they really change.
"""

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
    """How many requests were no-ops.

    Attributes:
        deletions: rows to delete that were not explicit, or are inserted as well.
        insertions: rows to insert that were explicit already.
        rules: rules to add that the program had already.
    """

    deletions: int = 0
    insertions: int = 0
    rules: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """One request, brought down to what it really changes.

    Attributes:
        deletions: E⁻, explicit facts that are explicit no longer.
        insertions: E⁺, facts that are explicit from now on and were not before.
        removed_rules: normal rules that the program loses.
        added_rules: normal rules that the program gains.
        ignored: requests that change nothing, by kind.
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
    """What an update did in one stratum.

    Attributes:
        index: the number of the stratum, from 1; 0 stands for facts of no stratum.
        algorithm: what brought it up to date, by name; `dred-c + modules` and the like
            where modules took part, whatever was asked for. Facts of no stratum need
            none.
        rounds: how many times rules were applied to new facts.
        forward_instances: rule instances matched from body to head.
        backward_instances: rule instances matched from head to body. Where facts are
            only asked whether rules derive them, small batches stop at the first
            instance for each, and large ones match all instances of a rule at once.
        overdeleted: facts that were deleted, some of them perhaps for a time only.
        rederived: overdeleted facts that one step brings back.
        proved: facts for which a surviving derivation was found before deleting.
        inserted: facts that were added, rederived ones included.
        compiled_rounds: how many of the rounds compiled code ran from one to the next.
        compiled_searches: how many searches for proofs compiled code made.
        seconds: time by phase.
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
    """What an update did, and what it cost.

    Attributes:
        algorithm: the algorithm that brought the result.
        reason: why this one was taken.
        strata: one report for each stratum that the update touched.
        deleted, inserted: facts that ceased to be explicit, and that became so.
        removed, added: net changes of facts as they are stored: of auxiliary
            predicates too, and one for all that differ in equal constants.
        ignored: requests that changed nothing.
        removed_rules, added_rules: how many rules the program lost and gained.
        seconds: time for the whole update.
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
        """Rule instances matched forwards, in all strata."""
        return sum(stratum.forward_instances for stratum in self.strata)

    @property
    def backward_instances(self) -> int:
        """Rule instances matched backwards, in all strata."""
        return sum(stratum.backward_instances for stratum in self.strata)

    @property
    def rounds(self) -> int:
        """Rounds, in all strata."""
        return sum(stratum.rounds for stratum in self.strata)


@dataclass(frozen=True, slots=True, eq=False)
class CliqueChange:
    """What an update changed where facts hold representatives of equal constants.

    Attributes:
        before, after: which constants were equal, and which are.
        lost: facts that were removed.
        gained: facts that were added.
        stayed: other facts that stood for other facts than they do now, if there are
            any.
    """

    before: Representatives
    after: Representatives
    lost: Snapshot
    gained: Snapshot
    stayed: Snapshot | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The exact net change of an update, and the report on it.

    Attributes:
        removed: facts that held before and do not hold now.
        added: facts that hold now and did not before.
        explicit_removed: facts that were explicit before and are not now.
        explicit_added: facts that are explicit now and were not before.
        summary: the report, with the numbers of facts that are stored.
        cliques: where equality is kept by rewriting, what the facts stand for.
    """

    removed: Snapshot
    added: Snapshot
    explicit_removed: Snapshot
    explicit_added: Snapshot
    summary: Report
    cliques: CliqueChange | None = None

    @property
    def report(self) -> Report:
        """The report; facts that are not stored are counted when it is asked for."""
        return replace(
            self.summary,
            removed=sum(self.removed.relations().values()),
            added=sum(self.added.relations().values()),
        )


# ----------------------------------------------------------------------------- requests


class UnknownRelationError(EvermatError, LookupError):
    """Rows were to be deleted from a relation that is not known.

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
    """One update as it was asked for.

    Attributes:
        delete, insert: rows by relation.
        remove_rules, add_rules: what changes in the program.
        replace: relations in which nothing is to be explicit but the inserted rows.
    """

    delete: Mapping[str, pa.Table]
    insert: Mapping[str, pa.Table]
    remove_rules: Iterable[Rule] = ()
    add_rules: Iterable[Rule] = ()
    replace: frozenset[str] = frozenset()


def declare(engine: Engine, request: Request, rules: Iterable[Rule]) -> None:
    """Make relations of rules and rows known, and refuse what does not fit.

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
    """Make the relations of rules known."""
    for rule in rules:
        for atom in rule.atoms():
            engine.declare(atom.predicate, atom.arity)


def read_request(
    engine: Engine,
    request: Request,
    change: RuleChange,
    explicit_among: Callable[[Facts], SettledFacts],
) -> Update:
    """What a request really changes: E⁻ := (E⁻ ∩ E) ∖ E⁺ and E⁺ := E⁺ ∖ E.

    Args:
        engine: knows the facts.
        request: rows to delete and to insert.
        change: what the request does to the rules.
        explicit_among: picks those of some facts that are explicit.
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
    """The rows of tables as facts; only those that have been seen, if `known`."""
    filled = {name: table for name, table in tables.items() if table.num_rows}
    return engine.find_all(filled) if known else engine.intern_all(filled)


def _all_explicit(engine: Engine, names: Iterable[str]) -> SettledFacts:
    """All explicit facts of relations, which a rule for each copies: `p(?x) :- p(?x)`.

    Views of stored sets are never settled as such, as the work would not follow the
    change. Here it may follow the facts: all of them were handed over anew.
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
