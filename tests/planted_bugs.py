"""Bugs that can be planted into the running code, by name; see docs/testing.md.

Unlike those of `planting`, these change no expression: a function is replaced by one
that calls it and then does something wrong, now and then. Compiled
kernels are left alone, as to compile them anew takes minutes; the mistakes are made in
the Python around them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat import functions
from evermat.algebra import Role
from evermat.engines.embedded import expressions, small_batch
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import Growing, RowCounts
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE, Relation
from evermat.engines.embedded.saturation import CompiledRounds
from evermat.engines.embedded.store import CounterColumn
from evermat.engines.embedded.union_find import Cliques

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


INLINE = 2**30


@dataclass(frozen=True)
class Bug:
    """A mistake somebody could make.

    Attributes:
        owner: the module or class that has the function.
        function: its name.
        wrong: makes the wrong function from the right one.
    """

    owner: Any
    function: str
    wrong: Callable[[Callable[..., Any]], Callable[..., Any]]

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        """Make the mistake for as long as the patch lasts."""
        right = getattr(self.owner, self.function)
        patch.setattr(self.owner, self.function, self.wrong(right))


# ------------------------------------------------------------------------ numbers


def _overflowing(names: str, low: int, high: int) -> Callable[..., Any]:
    """Results of operators are cut to 32 bits in a range where that shows."""

    def wrong(apply: Callable[..., Any]) -> Callable[..., Any]:
        def apply_wrongly(name: str, values: list[Any]) -> Any:
            found = apply(name, values)
            if found is None or name not in names or found.dtype != np.int64:
                return found
            size = np.abs(found)
            cut = found.astype(np.int32).astype(np.int64)
            return np.where((size >= low) & (size < high), cut, found)

        return apply_wrongly

    return wrong


def _off_by_a_word(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Sums that have just outgrown the ids of small integers begin anew."""

    def apply_wrongly(name: str, values: list[Any]) -> Any:
        found = apply(name, values)
        if found is None or name not in "+-" or found.dtype != np.int64:
            return found
        outside = (np.abs(found) >= INLINE - 1) & (np.abs(found) <= INLINE + 2)
        return np.where(outside, found - np.sign(found) * 2 * INLINE, found)

    return apply_wrongly


def _comparing_doubles(compare: Callable[..., Any]) -> Callable[..., Any]:
    """Integers are compared as doubles."""

    def compare_wrongly(left: Any, right: Any) -> int | None:
        a, b = (functions._number("<", each) for each in (left, right))  # noqa: SLF001
        if not (isinstance(a, int) and isinstance(b, int)):
            return compare(left, right)  # type: ignore[no-any-return]
        return (float(a) > float(b)) - (float(a) < float(b))

    return compare_wrongly


# ----------------------------------------------------------------------- counters


def _losing_decrements(which: int) -> Callable[..., Any]:
    """A fact that loses several instances at once is counted down by one."""

    def wrong(change: Callable[..., Any]) -> Callable[..., Any]:
        def change_wrongly(self: CounterColumn, counts: RowCounts, sign: int) -> None:
            if sign < 0 and self.which == which:
                counts = RowCounts(counts.facts, np.minimum(counts.numbers, 1))
            change(self, counts, sign)

        return change_wrongly

    return wrong


def _losing_compiled_decrements(which: int) -> Callable[..., Any]:
    """The same in compiled rounds."""

    def wrong(finish: Callable[..., Any]) -> Callable[..., Any]:
        def finish_wrongly(self: CompiledRounds, *given: Any) -> None:
            finish(self, *given)
            store = self._engine.store
            first: dict[tuple[str, int], int] = {}
            for change in store.counters[which]._changes or ():  # noqa: SLF001
                for name, rows, old in change() if callable(change) else ():
                    for row, number in zip(rows.tolist(), old.tolist(), strict=True):
                        first.setdefault((name, row), number)
            for (name, row), number in first.items():
                counter = store.relations[name].counter(which)
                if 0 < counter[row] < number - 1:
                    counter[row] += 1

        return finish_wrongly

    return wrong


def _forgetting_counters(restore: Callable[..., Any]) -> Callable[..., Any]:
    """What compiled rounds have overwritten is not written back."""

    def restore_wrongly(self: CounterColumn) -> None:
        changes = self._changes or ()
        self._changes = [each for each in changes if not callable(each)]
        restore(self)

    return restore_wrongly


def _forgetting_the_last_count(restore: Callable[..., Any]) -> Callable[..., Any]:
    """The last change of a counter is not taken back."""

    def restore_wrongly(self: CounterColumn) -> None:
        self._changes = (self._changes or [])[:-1]
        restore(self)

    return restore_wrongly


# ---------------------------------------------------------------- facts and rows


def _skipping_negated(deltas: Callable[..., Any]) -> Callable[..., Any]:
    """Where something was lost and gained, only one of the changes is looked at."""

    def deltas_wrongly(views: Any) -> list[Any]:
        found = [(role, delta) for role, delta in deltas(views) if not delta.is_empty()]
        roles = [role for role, _ in found]
        if Role.CHANGED in roles and Role.CHANGED_ABSENT in roles:
            found = [each for each in found if each[0] is Role.CHANGED]
        return found

    return deltas_wrongly


def _keeping_relations(rollback: Callable[..., Any]) -> Callable[..., Any]:
    """Relations of an update that was undone stay."""

    def rollback_wrongly(self: EmbeddedEngine) -> None:
        self._known_before = set(self.store.relations)
        rollback(self)

    return rollback_wrongly


def _keeping_bits(release: Callable[..., Any]) -> Callable[..., Any]:
    """A set that ends with its transaction leaves one row marked."""

    def release_wrongly(self: Growing) -> None:
        rows = {name: rows for name, rows in self.settled().rows.items() if rows.size}
        bit, relations = self.bit, self._sets.relations
        release(self)
        for name, some in rows.items():
            relations[name].status[some[-1]] |= bit

    return release_wrongly


def _stale_after_appending(update: Callable[..., Any]) -> Callable[..., Any]:
    """Of several rows that came at once, an index misses the last."""

    def update_wrongly(self: Relation, index: Any) -> None:
        count = self.count
        missing = index is not self.primary and 0 < index.covered < count - 1
        self.count -= missing
        try:
            update(self, index)
        finally:
            self.count = count
        if missing:
            index.covered = count

    return update_wrongly


def _stale_after_compacting(compact: Callable[..., Any]) -> Callable[..., Any]:
    """Indexes miss the first row of a relation that was compacted."""

    def compact_wrongly(self: Relation) -> None:
        compact(self)
        for index in self._indexes.values():
            index.covered = min(1, self.count)

    return compact_wrongly


def _keeping_a_representative(unite: Callable[..., Any]) -> Callable[..., Any]:
    """Of several constants that something else stands for now, one is not told."""

    def unite_wrongly(self: Cliques, *pairs: Any) -> Any:
        losers = unite(self, *pairs)
        return losers[:-1] if losers.size > 1 else losers

    return unite_wrongly


def _forgetting_a_member(differences: Callable[..., Any]) -> Callable[..., Any]:
    """Of several constants with another representative, one is overlooked."""

    def differences_wrongly(self: Cliques, other: Cliques) -> Any:
        found = differences(self, other)
        return found[:-1] if found.size > 1 else found

    return differences_wrongly


BUGS: dict[str, Bug] = {
    "products between 2^31 and 2^33 overflow": Bug(
        expressions, "_apply", _overflowing("*", 2**31, 2**33)
    ),
    "sums overflow where integers are no longer ids": Bug(
        expressions, "_apply", _off_by_a_word
    ),
    "large integers are compared as doubles": Bug(
        functions, "_compare_numbers", _comparing_doubles
    ),
    "C_nr is counted down once for several instances": Bug(
        CounterColumn, "_change", _losing_decrements(NONRECURSIVE)
    ),
    "C_nr is counted down once for several instances, compiled": Bug(
        CompiledRounds, "_take_over", _losing_compiled_decrements(NONRECURSIVE)
    ),
    "C_r is counted down once for several instances": Bug(
        CounterColumn, "_change", _losing_decrements(RECURSIVE)
    ),
    "C_r is counted down once for several instances, compiled": Bug(
        CompiledRounds, "_take_over", _losing_compiled_decrements(RECURSIVE)
    ),
    "a negated change is skipped beside a positive one": Bug(
        small_batch, "_deltas", _skipping_negated
    ),
    "counters of compiled rounds are not undone": Bug(
        CounterColumn, "restore", _forgetting_counters
    ),
    "the last change of a counter is not undone": Bug(
        CounterColumn, "restore", _forgetting_the_last_count
    ),
    "relations of an undone update stay": Bug(
        EmbeddedEngine, "rollback", _keeping_relations
    ),
    "a row stays marked after its transaction": Bug(Growing, "release", _keeping_bits),
    "an index misses a row that was appended": Bug(
        Relation, "_bring_up_to_date", _stale_after_appending
    ),
    "an index misses a row after compaction": Bug(
        Relation, "compact", _stale_after_compacting
    ),
    "facts of a constant keep its former representative": Bug(
        Cliques, "unite", _keeping_a_representative
    ),
    "a constant that is split off is overlooked": Bug(
        Cliques, "differences", _forgetting_a_member
    ),
}
"""Every one of them has to be found by the fuzzer within two minutes of one core."""
