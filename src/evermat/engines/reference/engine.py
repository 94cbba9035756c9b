"""The engine itself: stored facts, counters, transactions, data in and out."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Self, cast

import pyarrow as pa

from evermat.algebra import STORED_NUMBERS, EngineUseError, Role, require_bounded
from evermat.columns import ArityMismatchError, as_terms, constants, table_of_rows
from evermat.engines.reference.closing import CapturedRows, closed_rows, fits
from evermat.engines.reference.matching import Matcher, Reader, instance
from evermat.engines.reference.representatives import Cliques
from evermat.engines.reference.sets import (
    Counted,
    Growing,
    Settled,
    by_relation,
    contents_of,
    facts_of,
    rows_of,
)
from evermat.engines.reference.store import Copy, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evermat.algebra import (
        Captured,
        Closure,
        Counters,
        Counts,
        Engine,
        Facts,
        GrowingFacts,
        Journal,
        Monitor,
        Pattern,
        Query,
        QuerySet,
        SettledFacts,
        Snapshot,
        StoredFacts,
        Views,
    )
    from evermat.engine_abilities import Representatives
    from evermat.engines.reference.sets import Fact, Row
    from evermat.values import Kind


class ReferenceEngine:
    """Python sets and dictionaries; see `evermat.algebra.Engine` for the methods."""

    name = "reference"

    def __init__(self) -> None:
        self.monitor: Monitor | None = None
        self.matches = 0
        self.journal: Journal | None = None
        self.store = Store()
        self._saved: Store | None = None

    # -- relations

    def declare(self, relation: str, arity: int) -> None:
        """Make a relation known."""
        known = self.store.arities.setdefault(relation, arity)
        if known != arity:
            raise ArityMismatchError(known, arity, name=relation)

    def relations(self) -> Mapping[str, int]:
        """The arity of every known relation."""
        return dict(self.store.arities)

    # -- sets

    @property
    def materialised(self) -> StoredFacts:
        """All facts that held when the update began."""
        return self.store.materialised

    @property
    def explicit(self) -> StoredFacts:
        """The facts that were given, when the update began."""
        return self.store.explicit

    def growing(self) -> GrowingFacts:
        """A new, empty, growing set."""
        return Growing()

    def no_facts(self) -> SettledFacts:
        """The empty set."""
        return Settled({})

    def settle(self, facts: Facts) -> SettledFacts:
        """Work out a view."""
        require_bounded(facts)
        return Settled(contents_of(facts))

    def part(self, facts: SettledFacts, parts: int) -> SettledFacts:
        """One of so many parts of the facts."""
        contents = contents_of(facts)
        return Settled(
            {name: {*islice(rows, 0, None, parts)} for name, rows in contents.items()}
        )

    def size(self, facts: Facts, relation: str) -> int:
        """How many facts of a relation a view has."""
        return len(rows_of(facts, relation))

    # -- rules

    def derive(self, queries: QuerySet, views: Views) -> SettledFacts:
        """The facts that the queries yield, each once."""
        return self.derive_counts(queries, views).facts

    def derive_counts(self, queries: QuerySet, views: Views) -> Counts:
        """The facts that the queries yield, with the number of matches of each."""
        reader = Reader(views)
        numbers: Counter[Fact] = Counter()
        for query in _affected(queries, views):
            found = Counter(
                (query.head.relation, instance(query.head.operands, binding))
                for binding in Matcher(query, reader).matches()
            )
            numbers.update(found)
            self.matches += found.total()
            if self.monitor is not None:
                self.monitor.working(query.label, found.total())
        return Counted(numbers)

    def derivable(self, queries: QuerySet, views: Views) -> SettledFacts:
        """Those of the changed facts that a query yields."""
        return self.derive(queries, views)

    def answer(self, query: Query, views: Views) -> pa.Table:
        """The distinct rows a single query yields."""
        head = query.head.operands
        matches = Matcher(query, Reader(views)).matches()
        return table_of_rows(
            list({instance(head, each) for each in matches}), len(head)
        )

    def explain(self, query: Query, views: Views) -> list[str]:
        """The steps by which a query would be run, a line each."""
        return Matcher(query, Reader(views)).explain()

    # -- counters

    @property
    def nonrecursive_counts(self) -> Counters:
        """How often each fact was given or derived by nonrecursive rules."""
        return self.store.nonrecursive

    @property
    def recursive_counts(self) -> Counters:
        """How often each fact was derived by recursive rules."""
        return self.store.recursive

    def once(self, facts: SettledFacts) -> Counts:
        """The multiset that holds each of the facts once."""
        return Counted(dict.fromkeys(facts_of(facts), 1))

    # -- equality

    def representatives(self) -> Cliques:
        """Cliques of equal constants, none of them with two members yet."""
        return Cliques()

    def merge(
        self,
        representatives: Representatives,
        equalities: SettledFacts,
        lost: str,
        values: frozenset[Kind],
    ) -> SettledFacts:
        """Make the two constants of each binary fact equal."""
        self.declare(lost, 1)
        cliques = cast("Cliques", representatives)
        losers = set()
        for _, (left, right) in facts_of(equalities):
            loser = cliques.unite(left, right, values)
            if loser is not None:
                losers.add((loser,))
        return Settled({lost: losers})

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Take the second constants of binary facts to be what `source` says."""
        cliques = cast("Cliques", representatives)
        for _, (_, member) in facts_of(members):
            one = cast("Cliques", source).one(member)
            cliques.known.pop(member, None)
            if one != member:
                cliques.known[member] = one

    def members(
        self, nodes: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """For each fact `r(c, c)` the facts `r(c, d)` with d in the clique of c."""
        cliques = cast("Cliques", representatives)
        return Settled(
            by_relation(
                (name, (row[0], member))
                for name, row in facts_of(nodes)
                for member in cliques.clique(row[0])
            )
        )

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> SettledFacts:
        """The constants whose representative differs."""
        self.declare(relation, 1)
        old, new = cast("Cliques", before), cast("Cliques", after)
        return Settled(
            {
                relation: {
                    (constant,)
                    for constant in old.known.keys() | new.known.keys()
                    if old.one(constant) != new.one(constant)
                }
            }
        )

    def rewrite(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """The facts with every constant replaced by its representative."""
        cliques = cast("Cliques", representatives)
        found = ((name, cliques.row(row)) for name, row in facts_of(facts))
        return Settled(by_relation(found))

    def shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """The facts with a constant that is equal to another."""
        known = cast("Cliques", representatives).known
        members = known.keys() | known.values()
        found = (fact for fact in facts_of(facts) if not members.isdisjoint(fact[1]))
        return Settled(by_relation(found))

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> SettledFacts:
        """Those of the facts that `rewrite` takes to a fact of a view."""
        cliques = cast("Cliques", representatives)
        rows = {name: rows_of(target, name) for name in facts.relations()}
        found = (
            (name, row)
            for name, row in facts_of(facts)
            if cliques.row(row) in rows[name]
        )
        return Settled(by_relation(found))

    def mentioning(self, marks: SettledFacts, facts: Facts) -> SettledFacts:
        """The facts of a view with a constant that begins one of the marks."""
        wanted = {row[0] for _, row in facts_of(marks)}
        found = (fact for fact in facts_of(facts) if not wanted.isdisjoint(fact[1]))
        return Settled(by_relation(found))

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> SettledFacts:
        """A fact `relation(c, c)` for each clique of two and more of the facts."""
        cliques = cast("Cliques", representatives)
        shared = set(cliques.known.values())
        return Settled(
            {
                relation: {
                    (constant, constant)
                    for _, row in facts_of(facts)
                    for constant in row
                    if constant in shared
                }
            }
        )

    def normalise(self, representatives: Representatives) -> SettledFacts:
        """Let representatives of given facts hold in their place."""
        cliques = cast("Cliques", representatives)
        explicit = list(facts_of(self.store.explicit))
        outdated = [(name, row) for name, row in explicit if cliques.row(row) != row]
        images = {(name, cliques.row(row)) for name, row in outdated}
        implied = Settled(by_relation(images - set(explicit)))
        self.begin()
        self.commit(
            deleted=Settled(by_relation(outdated)),
            added=Settled(by_relation(images)),
            withdrawn=self.no_facts(),
            given=implied,
        )
        return implied

    def marked(self) -> SettledFacts:
        """The explicit facts whose recursive count is above zero."""
        return self.recursive_counts.positive(
            Settled(by_relation(facts_of(self.store.explicit)))
        )

    def originals(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """The explicit facts that `rewrite` takes to one of the facts."""
        cliques = cast("Cliques", representatives)
        wanted = {name: rows_of(facts, name) for name in facts.relations()}
        found = (
            (name, row)
            for name, rows in wanted.items()
            for row in rows_of(self.store.explicit, name)
            if cliques.row(row) in rows
        )
        return Settled(by_relation(found))

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """How many facts the materialised facts of a relation stand for."""
        cliques = cast("Cliques", representatives)
        return cliques.weight(rows_of(self.store.materialised, relation))

    # -- closures

    def counted(self, pattern: Pattern) -> SettledFacts:
        """The facts of a pattern of which one of the two counts is above zero."""
        rows = {
            row
            for counters in (self.store.nonrecursive, self.store.recursive)
            for (relation, row), number in counters.numbers.items()
            if number > 0 and relation == pattern.relation and fits(pattern, row)
        }
        return Settled({pattern.relation: rows})

    def close(
        self,
        closure: Closure,
        facts: Facts,
        *,
        without: Facts | None = None,
        through: SettledFacts | None = None,
        only: Pattern | None = None,
    ) -> SettledFacts:
        """The closure of facts, without the closure of other facts."""
        if through is not None and through.is_empty():
            return self.no_facts()
        rows = closed_rows(closure, facts)
        if only is not None:
            rows = {row for row in rows if fits(only, row)}
        if without is not None:
            rows -= closed_rows(closure, without)
        name = closure.pattern.relation
        if self.monitor is not None:
            known = contents_of(facts | self.materialised).get(name, set())
            self.monitor.writing(closure.label, len(rows - known))
        return Settled({name: rows})

    def close_among(
        self, closure: Closure, facts: Facts, candidates: Facts
    ) -> SettledFacts:
        """Those of the candidates that the closure of facts has."""
        return self.settle(candidates & self.close(closure, facts))

    def capture(self, closure: Closure, facts: Facts) -> Captured:
        """The closure of facts, to be read when the facts have long changed."""
        pattern = closure.pattern
        rows = frozenset(closed_rows(closure, facts))
        return CapturedRows(pattern.relation, len(pattern.operands), rows)

    # -- data in and out

    def intern(self, relation: str, table: pa.Table) -> SettledFacts:
        """The rows as facts of a relation, whether they hold or not."""
        self.declare(relation, table.num_columns)
        return Settled({relation: set(_table_rows(table))})

    def find(self, relation: str, table: pa.Table) -> SettledFacts:
        """Those of the rows that are known facts of a relation."""
        if relation not in self.store.arities:
            return self.no_facts()
        known = self.store.materialised | self.store.explicit
        return self.settle(self.intern(relation, table) & known)

    def snapshot(self, facts: Facts) -> Snapshot:
        """A copy that outlives the transaction."""
        return Copy(contents_of(facts), dict(self.store.arities))

    def read_counts(self, relation: str, also: Facts | None = None) -> pa.Table:
        """The materialised rows of a relation and their `c_nr` and `c_r`."""
        store = self.store
        wanted = store.materialised if also is None else store.materialised | also
        rows = list(rows_of(wanted, relation))
        table = table_of_rows(rows, store.arities.get(relation, 0))
        for name, counters in (("c_nr", store.nonrecursive), ("c_r", store.recursive)):
            numbers = [counters.numbers.get((relation, row), 0) for row in rows]
            table = table.append_column(name, pa.array(numbers, pa.int64()))
        return table

    # -- transactions

    def begin(self) -> None:
        """Start a transaction."""
        if self._saved is not None:
            raise EngineUseError("a transaction is under way already")
        self._saved = self.store.copy()

    def commit(
        self, *, deleted: Facts, added: Facts, withdrawn: Facts, given: Facts
    ) -> None:
        """End the transaction, with the facts changed as told."""
        if self._saved is None:
            raise EngineUseError("there is no transaction to commit")
        new = self.store.copy()
        new.materialised.contents = contents_of(
            (self.store.materialised - deleted) | added
        )
        new.explicit.contents = contents_of((self.store.explicit - withdrawn) | given)
        new.forget()
        if self.journal is not None:
            self.journal(new.difference(self._saved.numbers()))
        self.store.take(new)
        self._saved = None

    def rollback(self) -> None:
        """End the transaction as if it had not been."""
        if self._saved is None:
            raise EngineUseError("there is no transaction to roll back")
        self.store.take(self._saved)
        self._saved = None

    def fresh(self) -> Self:
        """An empty engine for the same relations, to materialise into."""
        engine = type(self)()
        engine.monitor = self.monitor
        engine.store.arities = dict(self.store.arities)
        return engine

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows given and materialised, each with a nonrecursive count of one."""
        # All tables are read before anything changes: one of them may be wrong.
        interned = [self.intern(relation, table) for relation, table in facts]
        for settled in interned:
            self.give(settled)

    def extend(self, facts: SettledFacts) -> None:
        """Add facts to the materialised ones directly: for fresh engines."""
        for relation, row in facts_of(facts):
            self.store.materialised.contents.setdefault(relation, set()).add(row)

    def reinstate(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Take up what another engine stored: for engines without facts."""
        store = self.store
        for relation, table in facts:
            arity = table.num_columns - len(STORED_NUMBERS)
            self.declare(relation, arity)
            numbers = [table[name].to_pylist() for name in STORED_NUMBERS]
            rows = _table_rows(table.select(range(arity)))
            for row, (holds, given, *counts) in zip(
                rows, zip(*numbers, strict=True), strict=True
            ):
                if holds:
                    store.materialised.contents.setdefault(relation, set()).add(row)
                if given:
                    store.explicit.contents.setdefault(relation, set()).add(row)
                store.nonrecursive.numbers[relation, row] = counts[0]
                store.recursive.numbers[relation, row] = counts[1]

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Load the given facts, without some and with others, into a fresh engine."""
        for relation, arity in self.relations().items():
            target.declare(relation, arity)
        facts = (self.store.explicit - without) | also
        cast("ReferenceEngine", target).give(Settled(contents_of(facts)))

    def adopt(self, other: Engine) -> tuple[Snapshot, Snapshot]:
        """Take over the contents of a fresh engine; return what left and what came."""
        source = cast("ReferenceEngine", other)
        for relation, arity in source.relations().items():
            self.declare(relation, arity)
        left = self.snapshot(self.materialised - source.materialised)
        came = self.snapshot(source.materialised - self.materialised)
        arities = self.store.arities
        if self.journal is not None:
            self.journal(source.store.difference(self.store.numbers()))
        self.store.take(source.store)
        self.store.arities = arities
        self.matches += source.matches
        return left, came

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """For each relation: facts, given facts, bytes, indexes."""
        return {
            relation: {
                "facts": len(rows_of(self.store.materialised, relation)),
                "given": len(rows_of(self.store.explicit, relation)),
                "bytes": sys.getsizeof(rows_of(self.store.materialised, relation)),
                "indexes": 0,
            }
            for relation in self.store.arities
        }

    def give(self, facts: SettledFacts) -> None:
        """Make facts given and materialised, and count those that were not given."""
        new = self.settle(facts - self.store.explicit)
        self.extend(new)
        for relation, row in facts_of(new):
            self.store.explicit.contents.setdefault(relation, set()).add(row)
        self.store.nonrecursive.add(self.once(new))


def _affected(queries: QuerySet, views: Views) -> Iterator[Query]:
    """The queries that may have matches: those whose changed relation has a change."""
    changes = {
        Role.CHANGED: views.delta_positive,
        Role.CHANGED_ABSENT: views.delta_negative,
    }
    for key, group in queries.by_change.items():
        if key is None:
            yield from group
            continue
        role, relation = key
        change = changes[role]
        if change is not None and relation in change.relations():
            yield from group


def _table_rows(table: pa.Table) -> Iterable[Row]:
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [constants(as_terms(column)) for column in table.columns]
    return zip(*columns, strict=True)
