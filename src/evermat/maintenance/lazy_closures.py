"""Lazy closures: stored as their external facts, and expanded when they are read.

A closure that no other rule reads need not be stored in full: a clique of a thousand
constants is a million facts, and follows from a thousand. Such a closure is *lazy*: its
rules are in no stratum, the engine stores its external facts only, and maintenance
works on a program without the other facts. This module adds these when users read them.

The facts of a closure are a relation, or the facts of a wider relation with certain
constants; then other facts of the same relation are stored as well.

A closure stays lazy as long as no other rule reads it. When such a rule is added, the
closure is written out (`write_out`), and stays so until everything is rematerialised.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Closure, ClosureKind, EngineUseError, Pattern, Views
from evermat.algebra.compile import compile_rules
from evermat.columns import joined_tables, rows_without
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import (
        ClosureSnapshot,
        Engine,
        Facts,
        Query,
        SettledFacts,
        Snapshot,
    )
    from evermat.maintenance.modules import ClosureModule, Module


# ------------------------------------------------------------------ changes


@dataclass(frozen=True, slots=True, eq=False)
class LazyView:
    """Facts, and their lazy closures."""

    engine: Engine
    facts: Facts
    lazy: Sequence[ClosureModule]

    def closures(self) -> dict[Pattern, Closure]:
        """Return the lazy closures by the patterns of their facts."""
        return {m.closure.pattern: m.closure for m in self.lazy}

    def snapshot_closure(self, closure: Closure) -> ClosureSnapshot:
        """Capture a closure of these facts."""
        return self.engine.snapshot_closure(closure, self.facts)


class Layered:
    """A snapshot with some of its patterns replaced by other snapshots.

    Args:
        base: stored facts.
        others: for some patterns, all of their facts.
        stored: the facts of patterns with constants that the base contains.
    """

    def __init__(
        self,
        base: Snapshot,
        others: Mapping[Pattern, Snapshot],
        stored: Sequence[Snapshot],
    ) -> None:
        self._base = base
        self._others = others
        self._stored = stored
        self._whole = {each.relation for each in others if not _constants(each)}

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each nonempty relation."""
        sizes = Counter(self._base.relations())
        for name in self._whole:
            sizes.pop(name, None)
        for snapshot in self._others.values():
            sizes.update(snapshot.relations())
        for snapshot in self._stored:
            sizes.subtract(snapshot.relations())
        return {name: size for name, size in sizes.items() if size}

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation."""
        patterns = [each for each in self._others if each.relation == relation]
        tables = []
        if relation not in self._whole and relation in self._base.relations():
            table = self._base.read(relation)
            tables.append(rows_without(table, [_constants(each) for each in patterns]))
        parts = [self._others[each] for each in patterns]
        tables += [part.read(relation) for part in parts if part.relations()]
        return joined_tables(tables) if tables else self._base.read(relation)


def _constants(pattern: Pattern) -> dict[int, Constant]:
    return {
        at: operand
        for at, operand in enumerate(pattern.operands)
        if isinstance(operand, Constant)
    }


@dataclass(frozen=True, slots=True, eq=False)
class LazyChange:
    """A closure before and after an update.

    Attributes:
        stored: the stored facts of the closure before and after, if the relation has
            other facts as well.
    """

    old: ClosureSnapshot
    new: ClosureSnapshot
    stored: tuple[ClosureSnapshot, ClosureSnapshot] | None


LazyChanges = dict["Pattern", LazyChange]
"""The changes of each pattern that is lazy before or after an update."""


def compare_lazy(
    before: LazyView,
    after: LazyView,
    changes: tuple[SettledFacts, SettledFacts] | None = None,
) -> LazyChanges:
    """Capture the lazy closures before and after an update.

    Args:
        before: the old state.
        after: the new one.
        changes: the facts removed and added; None if they are not known.
    """
    old, new = before.closures(), after.closures()
    lazy_changes: LazyChanges = {}
    for pattern in {**old, **new}:
        stored = Closure(ClosureKind.PLAIN, pattern)
        was, now = old.get(pattern, stored), new.get(pattern, stored)
        if was == now and changes is not None and not _reads(was, changes):
            continue

        def pair(
            one: Closure, other: Closure
        ) -> tuple[ClosureSnapshot, ClosureSnapshot]:
            if one == other and changes is not None:
                views = before.facts, after.facts
                return before.engine.snapshot_closures(one, *views, *changes)
            return before.snapshot_closure(one), after.snapshot_closure(other)

        beside = pair(stored, stored) if _constants(pattern) else None
        lazy_changes[pattern] = LazyChange(*pair(was, now), beside)
    return lazy_changes


def with_lazy_changes(
    changes: tuple[Snapshot, Snapshot], lazy_changes: LazyChanges
) -> tuple[Snapshot, Snapshot]:
    """Return removed and added facts, with lazy closures expanded for readers."""
    if not lazy_changes:
        return changes
    removed, added = changes
    stored = [pair.stored for pair in lazy_changes.values() if pair.stored is not None]
    return (
        Layered(
            removed,
            {each: pair.old.minus(pair.new) for each, pair in lazy_changes.items()},
            [old.minus(new) for old, new in stored],
        ),
        Layered(
            added,
            {each: pair.new.minus(pair.old) for each, pair in lazy_changes.items()},
            [new.minus(old) for old, new in stored],
        ),
    )


def _reads(closure: Closure, changes: tuple[SettledFacts, SettledFacts]) -> bool:
    """Return whether a closure has facts of relations that changed."""
    patterns = (closure.pattern, closure.edges)
    changed = changes[0].relations() | changes[1].relations()
    return any(p is not None and p.relation in changed for p in patterns)


# -------------------------------------------------------------------- reading


class LazyClosureReader:
    """Reads facts of an engine as if all closures were stored in full.

    Args:
        engine: the engine.
        lazy: the lazy closures.
        modules: modules whose facts are stored but not counted.
    """

    def __init__(
        self,
        engine: Engine,
        lazy: Sequence[ClosureModule],
        modules: Sequence[Module],
    ) -> None:
        self._engine = engine
        self._lazy = tuple(lazy)
        self._modules = modules

    @property
    def lazy(self) -> frozenset[str]:
        """The relations that have facts in a lazy closure."""
        return frozenset(module.closure.pattern.relation for module in self._lazy)

    def _about(self, relation: str) -> list[ClosureModule]:
        return [m for m in self._lazy if m.closure.pattern.relation == relation]

    def rest(self, relation: str) -> list[Snapshot]:
        """Return the facts of a relation that are in lazy closures and not stored."""
        engine, facts = self._engine, self._engine.materialised
        found = []
        for module in self._about(relation):
            closure = module.closure
            stored = Closure(ClosureKind.PLAIN, closure.pattern)
            less = engine.snapshot_closure(stored, facts)
            found.append(engine.snapshot_closure(closure, facts).minus(less))
        return found

    def size(self, relation: str) -> int:
        """Return the number of facts of a relation."""
        stored = self._engine.size(self._engine.materialised, relation)
        rest = self.rest(relation)
        return stored + sum(each.relations().get(relation, 0) for each in rest)

    def contains(self, relation: str, row: pa.Table) -> bool:
        """Return whether a fact holds."""
        engine = self._engine
        lazy = self._about(relation)
        found = engine.find(relation, row) & engine.materialised
        if not engine.settle(found).is_empty():
            return True
        if not lazy:
            return False
        engine.begin()
        try:
            fact = engine.intern(relation, row)
            return any(
                not engine.close_among(
                    module.closure, engine.materialised, fact
                ).is_empty()
                for module in lazy
            )
        finally:
            engine.rollback()

    @contextmanager
    def facts(
        self, patterns: Sequence[Pattern], *, is_scratching: bool = False
    ) -> Iterator[Facts]:
        """Provide all facts that some patterns can match, while the block lasts.

        Args:
            patterns: the patterns to read.
            is_scratching: whether the block needs a transaction of its own, in which
                case it always gets one.
        """
        engine = self._engine
        if is_scratching:
            engine.begin()
            try:
                yield self.seen_by(patterns)
            finally:
                engine.rollback()
        elif any(self._wanted(patterns)):
            with engine.reading():
                yield self.seen_by(patterns)
        else:
            yield engine.materialised

    def answer(self, query: Query) -> pa.Table | None:
        """Return the answers to a query for the facts of one pattern in a lazy closure.

        None if the query has another form, or if a join is faster.
        """
        if query.negative or query.computations or len(query.positive) != 1:
            return None
        (pattern,) = query.positive
        wanted = [closure for closure, _ in self._wanted(query.positive)]
        head, constants = query.head.operands, _constants(pattern)
        places = [at for at in range(len(pattern.operands)) if at not in constants]
        columns = [pattern.operands[at] for at in places]
        if len(wanted) != 1 or len(head) != len(columns) or {*head} != {*columns}:
            return None
        (closure,) = wanted
        if not _constants(closure.pattern).items() <= constants.items():
            return None  # there may be other facts
        rows = self._engine.read_closure(closure, self._engine.materialised, pattern)
        if rows is None:
            return None
        return rows.select([places[columns.index(each)] for each in head])

    def seen_by(self, patterns: Iterable[Pattern]) -> Facts:
        """Return all facts that some patterns can match; inside of a transaction."""
        engine = self._engine
        rest = engine.no_facts()
        for closure, pattern in self._wanted(patterns):
            closed = engine.close(closure, engine.materialised, only=pattern)
            # Settled now, because engines can only nest views to a limited depth.
            rest = engine.settle(rest | closed) if not rest.is_empty() else closed
        return engine.materialised if rest.is_empty() else engine.materialised | rest

    def everything(self) -> Facts:
        """Return all facts, lazy closures written out; inside of a transaction."""
        return self.seen_by([module.closure.pattern for module in self._lazy])

    def _wanted(self, patterns: Iterable[Pattern]) -> Iterator[tuple[Closure, Pattern]]:
        """Yield the lazy closures of facts that some patterns can match."""
        for pattern in patterns:
            for module in self._about(pattern.relation):
                if _can_match(pattern, module.closure.pattern):
                    yield module.closure, pattern

    def counts(self, relation: str) -> pa.Table:
        """Return the facts of a relation with both counts, including modules."""
        engine = self._engine
        lazy = self._about(relation)
        written = [m for m in self._modules if m.region.touches(relation)]
        if not lazy and not written:
            return engine.read_counts(relation)
        engine.begin()
        try:
            facts: Facts = engine.materialised
            also: Facts | None = None
            for module in lazy:
                closed = engine.close(module.closure, engine.materialised)
                also = closed if also is None else engine.settle(also | closed)
            if also is not None:
                facts |= also
            for each in (*lazy, *written):
                rules = compile_rules(each.rules, lambda _rule, _atom: False)
                counts = engine.derive_counts(rules.full, Views(facts, facts))
                engine.recursive_counts.add(counts)
            return engine.read_counts(relation, also)
        finally:
            engine.rollback()


def _can_match(one: Pattern, other: Pattern) -> bool:
    """Return whether a fact can match both patterns."""
    theirs = _constants(other)
    return all(theirs.get(at, value) == value for at, value in _constants(one).items())


def write_out(engine: Engine, lazy: Iterable[ClosureModule]) -> None:
    """Store all facts of closures that were lazy."""
    engine.begin()
    try:
        nothing = engine.no_facts()
        written = engine.growing()
        for module in lazy:
            closed = engine.close(module.closure, engine.materialised)
            written.add(closed - engine.materialised)
        engine.commit(
            deleted=nothing,
            added=written,
            explicit_removed=nothing,
            explicit_added=nothing,
        )
    except BaseException:
        with suppress(EngineUseError):  # it has been committed
            engine.rollback()
        raise
