"""Closures that are held by what they start from, and written out when read.

A closure that no other rule reads need not be written out: a clique of a thousand
constants is a million facts, and follows from a thousand. Such a closure is *held*. Its
rules are then in no stratum, the engine stores the external facts only, and maintenance
works on a program in which nobody misses the rest. What users read goes through this
file, where the closure is put back.

A closure stays held as long as nobody else reads it. When a rule comes that does, it is
written out (`write_out`), and stays so until everything is materialised anew.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Closure, ClosureKind, Views
from evermat.rule_plans import compile_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import (
        Captured,
        Engine,
        Facts,
        Pattern,
        SettledFacts,
        Snapshot,
    )
    from evermat.maintenance.closures import ClosureModule
    from evermat.maintenance.modules import Module


# ------------------------------------------------------------------ what changed


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Facts, and what of them is held."""

    engine: Engine
    facts: Facts
    held: Sequence[ClosureModule]

    def closures(self) -> dict[str, Closure]:
        """The held closures by relation."""
        return {m.closure.pattern.relation: m.closure for m in self.held}


class Layered:
    """A snapshot some relations of which are read elsewhere."""

    def __init__(self, base: Snapshot, held: Mapping[str, Snapshot]) -> None:
        self._base = base
        self._held = held

    def relations(self) -> Mapping[str, int]:
        """The number of facts of each relation that has any."""
        sizes = {
            name: size
            for name, size in self._base.relations().items()
            if name not in self._held
        }
        for snapshot in self._held.values():
            sizes.update(snapshot.relations())
        return sizes

    def read(self, relation: str) -> pa.Table:
        """The rows of a relation."""
        return self._held.get(relation, self._base).read(relation)


Captures = dict[str, "tuple[Captured, Captured]"]
"""Of each relation that is held before or after an update: both states."""


def capture(
    before: Sight, after: Sight, changed: frozenset[str] | None = None
) -> Captures:
    """What is held before and after an update, as it is now.

    Args:
        before: the old state.
        after: the new one.
        changed: relations that changed; None if that is not known.
    """
    old, new = before.closures(), after.closures()
    captures: Captures = {}
    for name in {**old, **new}:
        was, now = _closure(name, old, new), _closure(name, new, old)
        if was == now and changed is not None and not _reads(was, changed):
            continue
        captures[name] = (
            before.engine.capture(was, before.facts),
            after.engine.capture(now, after.facts),
        )
    return captures


def with_held_changes(
    changes: tuple[Snapshot, Snapshot], captures: Captures
) -> tuple[Snapshot, Snapshot]:
    """What left and what came, with held closures as their readers see them."""
    if not captures:
        return changes
    removed, added = changes
    return (
        Layered(removed, {n: old.minus(new) for n, (old, new) in captures.items()}),
        Layered(added, {n: new.minus(old) for n, (old, new) in captures.items()}),
    )


def _closure(
    name: str, mine: Mapping[str, Closure], others: Mapping[str, Closure]
) -> Closure:
    """The closure of a relation, which is just its facts where it is not held."""
    if name in mine:
        return mine[name]
    return Closure(ClosureKind.PLAIN, others[name].pattern)


def _reads(closure: Closure, changed: frozenset[str]) -> bool:
    patterns = (closure.pattern, closure.edges)
    return any(p is not None and p.relation in changed for p in patterns)


# -------------------------------------------------------------------- reading


class HeldFacts:
    """Reads facts of an engine as if all closures were written out.

    Args:
        engine: where the facts are.
        held: closures that are not written out.
        modules: modules whose facts are written out but not counted.
    """

    def __init__(
        self,
        engine: Engine,
        held: Sequence[ClosureModule],
        modules: Sequence[Module],
    ) -> None:
        self._engine = engine
        self._held = {module.closure.pattern.relation: module for module in held}
        self._modules = modules

    @property
    def held(self) -> frozenset[str]:
        """The relations that are held."""
        return frozenset(self._held)

    def snapshot(self, relation: str) -> Snapshot | None:
        """The facts of a relation, if it is held."""
        module = self._held.get(relation)
        if module is None:
            return None
        engine = self._engine
        return engine.capture(module.closure, engine.materialised).minus(None)

    def size(self, relation: str) -> int:
        """How many facts a relation has."""
        snapshot = self.snapshot(relation)
        if snapshot is None:
            return self._engine.size(self._engine.materialised, relation)
        return snapshot.relations().get(relation, 0)

    def contains(self, relation: str, row: pa.Table) -> bool:
        """Whether a fact holds."""
        engine = self._engine
        module = self._held.get(relation)
        if module is None:
            found = engine.find(relation, row) & engine.materialised
            return not engine.settle(found).is_empty()
        engine.begin()
        try:
            fact = engine.intern(relation, row)
            found = engine.close_among(module.closure, engine.materialised, fact)
            return not found.is_empty()
        finally:
            engine.rollback()

    @contextmanager
    def facts(
        self, patterns: Iterable[Pattern], *, is_scratching: bool = False
    ) -> Iterator[Facts]:
        """All facts that some patterns can match; good as long as the block lasts.

        Args:
            patterns: what will be read.
            is_scratching: whether the block needs a transaction of its own, in which
                case it always gets one.
        """
        wanted = [each for each in patterns if each.relation in self._held]
        if not wanted and not is_scratching:
            yield self._engine.materialised
            return
        engine = self._engine
        engine.begin()
        try:
            facts: Facts = engine.materialised
            for pattern in wanted:
                closure = self._held[pattern.relation].closure
                facts |= engine.close(closure, engine.materialised, only=pattern)
            yield facts
        finally:
            engine.rollback()

    def counts(self, relation: str) -> pa.Table:
        """The facts of a relation with both counts, instances of modules included."""
        engine = self._engine
        modules = [m for m in self._modules if m.region.touches(relation)]
        held = self._held.get(relation)
        if held is None and not modules:
            return engine.read_counts(relation)
        engine.begin()
        try:
            written: SettledFacts | None = None
            facts: Facts = engine.materialised
            if held is not None:
                written = engine.close(held.closure, facts)
                facts |= written
                modules = [held]
            for module in modules:
                rules = compile_rules(module.rules, lambda _rule, _atom: False)
                counts = engine.derive_counts(rules.full, Views(facts, facts))
                engine.recursive_counts.add(counts)
            return engine.read_counts(relation, written)
        finally:
            engine.rollback()


def write_out(engine: Engine, held: Iterable[ClosureModule]) -> None:
    """Have the engine store all facts of closures that were held."""
    engine.begin()
    try:
        nothing = engine.no_facts()
        written = engine.growing()
        for module in held:
            closed = engine.close(module.closure, engine.materialised)
            written.add(closed - engine.materialised)
        engine.commit(deleted=nothing, added=written, withdrawn=nothing, given=nothing)
    except BaseException:
        engine.rollback()
        raise
