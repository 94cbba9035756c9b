"""Transactions, and engines to materialise into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from engine_facts import (
    facts_in,
    facts_of,
    interned,
    make_facts,
    stored_counts,
    tables,
)
from evermat.algebra import EngineUseError
from evermat.columns import ArityMismatchError, MissingValueError, table_of_rows
from evermat.values import ValueConversionError

if TYPE_CHECKING:
    from evermat.algebra import Engine

GIVEN = make_facts(e=[(1, 2), (2, 3)], a=[(1,)])
DERIVED = make_facts(r=[(1, 2), (1, 3)])


def loaded(engine: Engine) -> Engine:
    engine.load(tables(GIVEN))
    engine.extend(interned(engine, DERIVED))
    engine.recursive_counts.add(engine.once(interned(engine, DERIVED)))
    return engine


def change(engine: Engine) -> None:
    """Everything an update may do before it ends."""
    engine.begin()
    engine.declare("new", 1)
    engine.nonrecursive_counts.add(engine.once(interned(engine, DERIVED)))
    engine.recursive_counts.subtract(engine.once(interned(engine, DERIVED)))
    grown = engine.growing()
    grown.add(interned(engine, make_facts(new=[("never stored",)])))


def test_commit_changes_facts_and_given_facts(engine: Engine) -> None:
    loaded(engine).begin()
    engine.commit(
        deleted=interned(engine, make_facts(e=[(1, 2)], r=[(1, 3)])),
        added=interned(engine, make_facts(r=[(5, 5)], e=[(1, 2)])),
        explicit_removed=interned(engine, make_facts(e=[(1, 2)], a=[(1,)])),
        explicit_added=interned(engine, make_facts(r=[(5, 5)])),
    )
    assert facts_of(engine, engine.materialised) == make_facts(
        e=[(1, 2), (2, 3)], a=[(1,)], r=[(1, 2), (5, 5)]
    )
    assert facts_of(engine, engine.explicit) == make_facts(e=[(2, 3)], r=[(5, 5)])


def test_until_commit_stored_sets_are_as_they_were(engine: Engine) -> None:
    loaded(engine)
    change(engine)
    assert facts_of(engine, engine.materialised) == GIVEN | DERIVED
    assert facts_of(engine, engine.explicit) == GIVEN


def test_rollback_restores_facts_and_counters(engine: Engine) -> None:
    before = stored_counts(loaded(engine))
    change(engine)
    engine.rollback()
    assert facts_of(engine, engine.materialised) == GIVEN | DERIVED
    assert facts_of(engine, engine.explicit) == GIVEN
    assert stored_counts(engine) == before
    engine.begin()
    nothing = engine.no_facts()
    engine.commit(
        deleted=nothing, added=nothing, explicit_removed=nothing, explicit_added=nothing
    )
    assert stored_counts(engine) == before


def test_counters_of_forgotten_facts_start_again_at_zero(engine: Engine) -> None:
    loaded(engine).begin()
    gone, nothing = interned(engine, DERIVED), engine.no_facts()
    engine.commit(
        deleted=gone, added=nothing, explicit_removed=nothing, explicit_added=nothing
    )
    engine.begin()
    back = interned(engine, DERIVED)
    assert facts_of(engine, engine.recursive_counts.zero(back)) == DERIVED
    engine.commit(
        deleted=nothing, added=back, explicit_removed=nothing, explicit_added=nothing
    )
    assert {stored_counts(engine)[fact] for fact in DERIVED} == {(0, 0)}


def test_facts_can_leave_and_come_back_many_times(engine: Engine) -> None:
    loaded(engine)
    for _ in range(4):
        engine.begin()
        facts, nothing = interned(engine, GIVEN), engine.no_facts()
        engine.commit(
            deleted=facts, added=nothing, explicit_removed=facts, explicit_added=nothing
        )
        assert facts_of(engine, engine.materialised) == DERIVED
        engine.begin()
        facts, nothing = interned(engine, GIVEN), engine.no_facts()
        engine.commit(
            deleted=nothing, added=facts, explicit_removed=nothing, explicit_added=facts
        )
        assert facts_of(engine, engine.materialised) == GIVEN | DERIVED


def test_transactions_do_not_nest(engine: Engine) -> None:
    engine.begin()
    with pytest.raises(EngineUseError):
        engine.begin()
    engine.rollback()
    with pytest.raises(EngineUseError):
        engine.rollback()
    nothing = engine.no_facts()
    with pytest.raises(EngineUseError):
        engine.commit(
            deleted=nothing,
            added=nothing,
            explicit_removed=nothing,
            explicit_added=nothing,
        )


def test_a_fresh_engine_is_empty_and_apart(engine: Engine) -> None:
    other = loaded(engine).fresh()
    assert facts_of(other, other.materialised) == set()
    other.load(tables(make_facts(e=[(9, 9)])))
    assert facts_of(engine, engine.materialised) == GIVEN | DERIVED
    assert facts_of(other, other.materialised) == make_facts(e=[(9, 9)])


def test_explicit_facts_are_copied_with_a_change(engine: Engine) -> None:
    other = loaded(engine).fresh()
    engine.copy_explicit(
        other,
        without=interned(engine, make_facts(e=[(1, 2), (2, 3)])),
        also=interned(engine, make_facts(e=[(2, 3)], r=[(1, 2)])),
    )
    expected = make_facts(e=[(2, 3)], a=[(1,)], r=[(1, 2)])
    assert facts_of(other, other.explicit) == expected
    assert facts_of(other, other.materialised) == expected
    assert stored_counts(other) == dict.fromkeys(expected, (1, 0))


def test_adopting_tells_what_left_and_what_came(engine: Engine) -> None:
    other = loaded(engine).fresh()
    engine.copy_explicit(
        other,
        without=interned(engine, make_facts(e=[(1, 2)])),
        also=interned(engine, make_facts(b=[("new",)])),
    )
    other.extend(interned(other, make_facts(r=[(1, 3), (7, 7)])))
    other.nonrecursive_counts.add(other.once(interned(other, make_facts(r=[(7, 7)]))))
    counts = stored_counts(other)
    left, came = engine.adopt(other)
    assert facts_in(left) == make_facts(e=[(1, 2)], r=[(1, 2)])
    assert facts_in(came) == make_facts(r=[(7, 7)], b=[("new",)])
    assert stored_counts(engine) == counts
    assert facts_of(engine, engine.explicit) == make_facts(
        e=[(2, 3)], a=[(1,)], b=[("new",)]
    )


def test_a_failed_call_leaves_the_engine_usable(engine: Engine) -> None:
    before = stored_counts(loaded(engine))
    engine.begin()
    with pytest.raises(ArityMismatchError):
        engine.intern("e", table_of_rows([(1,)], 1))
    with pytest.raises(ValueConversionError):
        engine.intern("e", pa.table({"x": [[1]], "y": [[2]]}))
    with pytest.raises(MissingValueError):
        engine.intern("e", pa.table({"x": [1, None], "y": [1, 2]}))
    engine.rollback()
    assert stored_counts(engine) == before
    engine.load(tables(make_facts(e=[(8, 8)])))
    assert facts_of(engine, engine.explicit) == GIVEN | make_facts(e=[(8, 8)])
