"""What a journal is told, and taking it up in another engine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, make_facts, rows_of, stored_counts, tables
from evermat.algebra import STORED_NUMBERS
from evermat.engines import make_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from evermat.algebra import Engine, StoredChange
    from oracle import Fact

GIVEN = make_facts(e=[(1, 2), (2, 3)], a=[("x",)], yes=[()])
DERIVED = make_facts(r=[(1, 2), (1, 3)], wide=[(1, "y", 2.5, 7)])


class Ledger:
    """Adds up what a journal is told."""

    def __init__(self) -> None:
        self.totals: dict[str, Counter[Fact]] = {n: Counter() for n in STORED_NUMBERS}
        self.tables: dict[str, pa.Table] = {}
        self.entries = 0

    def write(self, change: StoredChange) -> None:
        self.entries += 1
        for relation, size in change.relations().items():
            table = self.tables[relation] = change.read(relation)
            assert table.num_rows == size
            rows = rows_of(table.select(range(table.num_columns - 4)))
            assert len(set(rows)) == size
            for name, totals in self.totals.items():
                for row, number in zip(rows, table[name].to_pylist(), strict=True):
                    totals[relation, row] += number

    def facts(self, name: str) -> set[Fact]:
        totals = self.totals[name]
        assert set(totals.values()) <= {0, 1}
        return {fact for fact, number in totals.items() if number}

    def agrees_with(self, engine: Engine) -> bool:
        counts = {
            fact: (self.totals["c_nr"][fact], self.totals["c_r"][fact])
            for fact in self.facts("holds")
        }
        return (
            self.facts("holds") == facts_of(engine, engine.materialised)
            and self.facts("given") == facts_of(engine, engine.explicit)
            and counts == stored_counts(engine)
        )


def build(engine: Engine) -> None:
    """Replace what an engine stores, as materialising does."""
    fresh = engine.fresh()
    fresh.load(tables(GIVEN))
    derived = interned(fresh, DERIVED)
    fresh.extend(derived)
    fresh.recursive_counts.add(fresh.once(derived))
    engine.adopt(fresh)


def maintain(engine: Engine) -> None:
    """Facts leave, come, and stay with another count."""
    engine.begin()
    kept, gone = make_facts(r=[(1, 2)]), make_facts(r=[(1, 3)], e=[(1, 2)], yes=[()])
    come = make_facts(r=[(9, 9)], e=[(5, 5)])
    for _ in range(2):
        engine.nonrecursive_counts.add(engine.once(interned(engine, kept | come)))
    engine.nonrecursive_counts.subtract(engine.once(interned(engine, kept)))
    engine.recursive_counts.subtract(engine.once(interned(engine, kept)))
    engine.commit(
        deleted=interned(engine, gone),
        added=interned(engine, come),
        explicit_removed=interned(engine, make_facts(e=[(1, 2)], a=[("x",)], yes=[()])),
        explicit_added=interned(engine, make_facts(e=[(5, 5)])),
    )


@pytest.fixture
def ledger(engine: Engine) -> Iterator[Ledger]:
    ledger = Ledger()
    engine.journal = ledger.write
    yield ledger
    engine.journal = None


def test_a_new_materialisation_is_told(engine: Engine, ledger: Ledger) -> None:
    build(engine)
    assert ledger.facts("holds") == GIVEN | DERIVED
    assert ledger.agrees_with(engine)


def test_an_update_is_told_with_its_counts(engine: Engine, ledger: Ledger) -> None:
    build(engine)
    maintain(engine)
    assert ledger.entries == 2
    assert ledger.agrees_with(engine)


def test_only_differences_are_told_when_all_is_built_anew(
    engine: Engine, ledger: Ledger
) -> None:
    build(engine)
    maintain(engine)
    build(engine)
    assert ledger.agrees_with(engine)
    before = ledger.totals
    ledger.tables.clear()
    build(engine)
    assert not ledger.tables
    assert ledger.totals == before


def test_a_journal_that_refuses_keeps_everything_as_it_was(
    engine: Engine, ledger: Ledger
) -> None:
    build(engine)

    def refuse(change: StoredChange) -> None:
        del change
        message = "no room"
        raise OSError(message)

    engine.journal = refuse
    with pytest.raises(OSError, match="no room"):
        maintain(engine)
    engine.rollback()
    assert ledger.agrees_with(engine)
    fresh = engine.fresh()
    with pytest.raises(OSError, match="no room"):
        engine.adopt(fresh)
    assert ledger.agrees_with(engine)


def test_transactions_that_are_rolled_back_are_not_told(
    engine: Engine, ledger: Ledger
) -> None:
    build(engine)
    engine.begin()
    engine.nonrecursive_counts.add(engine.once(interned(engine, DERIVED)))
    engine.rollback()
    assert ledger.entries == 1


def test_another_engine_takes_up_what_was_stored(
    engine: Engine, ledger: Ledger, engine_name: str
) -> None:
    build(engine)
    twin = make_engine(engine_name)
    twin.reinstate(ledger.tables.items())
    assert ledger.agrees_with(twin)
    assert twin.relations() == {"e": 2, "a": 1, "yes": 0, "r": 2, "wide": 4}
    twin.journal = ledger.write
    maintain(twin)
    assert ledger.agrees_with(twin)
