"""Rounds that compiled code runs leave what rounds run by operators leave."""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evermat.algebra import EngineUseError
from evermat.engines.embedded import saturation, triggers
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.planner import _note_columns_to_keep, _Planner
from evermat.engines.embedded.saturation import CompiledRounds, Saturator
from evermat.engines.embedded.triggers import Triggers
from paper_examples import Example
from planting import Mutant, assign, plant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.maintenance.update import StratumReport

Edge = tuple[int, int]

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    back(?x, ?y) :- reach(?x, ?y), reach(?y, ?x) .
    path(?x, ?y, ?z) :- edge(?x, ?y), reach(?y, ?z) .
    free(?x) :- node(?x), not back(?x, ?x) .
    lonely(?x) :- free(?x), not edge(?x, ?x) .
    sure() :- reach(?x, ?y), lonely(?y) .
    twin(?x, ?y) :- edge(?z, ?x), edge(?z, ?y), ?x != ?y, ?z != 3 .
    via(?x, 1) :- path(?x, 3, ?y), lonely(?y) .
    via(?x, 2) :- path(?x, 4, ?y), lonely(?y) .
"""
DERIVED = ("reach", "back", "path", "free", "lonely", "sure", "twin", "via")
NODES = 12


def example(edges: set[Edge], rules: str = RULES) -> Example:
    nodes = [(node,) for node in range(NODES)]
    return Example(EmbeddedEngine(), rules, edge=sorted(edges), node=nodes)


def counts(some: Example) -> dict[str, object]:
    return {name: some.counts(name) for name in DERIVED}


def random_edges(random_: random.Random, count: int) -> set[Edge]:
    return {(random_.randrange(NODES), random_.randrange(NODES)) for _ in range(count)}


ALGORITHMS = ("dred-c", "dred", "fp", "bf", "bf-c")


NONLINEAR = RULES.replace("reach(?x, ?y), edge(?y, ?z)", "reach(?x, ?y), reach(?y, ?z)")


def play(
    seed: int, updates: int = 8, algorithm: str = "dred-c", rules: str = RULES
) -> None:
    """Some updates, each compared with a new materialisation."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    edges = random_edges(random_, 14)
    some = example(edges, rules)
    for _ in range(updates):
        gone = set(random_.sample(sorted(edges), min(len(edges), 3)))
        come = random_edges(random_, 3)
        some.update(
            delete={"edge": sorted(gone)},
            insert={"edge": sorted(come)},
            algorithm=algorithm,
        )
        edges = (edges - gone) | come
        assert counts(some) == counts(example(edges, rules))
        require_no_marks(some)


def require_no_marks(some: Example) -> None:
    """Sets that were taken for a time have left nothing behind."""
    engine = some.materialisation.engine
    assert isinstance(engine, EmbeddedEngine)
    for relation in engine.store.relations.values():
        assert (relation.status[: relation.count] < 4).all(), relation.name


@pytest.mark.parametrize("seed", range(8))
def test_as_from_scratch(seed: int, compiled: list[bool]) -> None:
    play(seed)
    assert all(compiled)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithms_as_from_scratch(algorithm: str, compiled: list[bool]) -> None:
    play(20, algorithm=algorithm)
    assert all(compiled)


MUTANTS = (
    Mutant(
        "inline rows are looked up by what nobody knows",
        _Planner._take_inline,
        lambda self, column: column.index in self.bound,
        lambda: True,
        "dred-c",
    ),
    Mutant(
        "few inline rows are taken and none of their values kept",
        _note_columns_to_keep,
        lambda inline: {column.index for column in inline.columns},
        lambda needed, inline: (
            needed.difference_update({column.index for column in inline.columns})
            or set()
        ),
        "dred-c",
    ),
    Mutant(
        "facts with a count are admitted",
        Saturator._new_form,
        lambda task, _which: _which(task.zero),
        lambda: -1,
        "dred-c",
    ),
    Mutant(
        "facts that fall in the same round are hidden from each other",
        Saturator._new_form,
        lambda task: int(task.enters_first),
        lambda: 1,
        "dred-c",
    ),
    Mutant(
        "the set that grows is not told what was admitted",
        CompiledRounds._take_over,
        lambda self, cast, facts: cast("Growing", self._task.into).take_over(facts),
        algorithm="dred-c",
    ),
    Mutant(
        "facts that get rows are no candidates",
        CompiledRounds._give_rows,
        lambda state, last: assign(state["candidates"], last),
        algorithm="dred-c",
    ),
    Mutant(
        "rules that are reached later are not laid out",
        Triggers._connect,
        lambda self: assign(self._is_laid_out, False),  # noqa: FBT003
        algorithm="dred-c",
    ),
    Mutant(
        "facts that get rows on the way are put into one index only",
        triggers._growth_of,
        lambda count, other: (count, other, count),
        lambda count: (count, 0, count),
        "dred-c",
    ),
    Mutant(
        "relations are not told of rows that facts got on the way",
        Triggers.note_growth,
        lambda relation, line: relation.note_appended(line[0], has_other=line[1] != 0),
        algorithm="dred",
    ),
    Mutant(
        "facts that came back are left in the set of those that went",
        EmbeddedEngine.commit,
        lambda self, come, bits: self.store.add(come, zeros=bits),
        lambda self, come: self.store.add(come),
        "dred-c",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011  whatever goes wrong first
        play_all(range(30))


def play_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        play(seed, updates=4)
        play(seed, updates=4, algorithm="dred")
        play(seed, updates=4, rules=NONLINEAR)
        play_late_rules(seed)


def play_late_rules(seed: int) -> None:
    """The change of a relation is reached long after the relation was numbered."""
    rules = """
        p(?x, ?y) :- a(?x, ?y) .
        p(?x, ?z) :- p(?x, ?y), b(?y, ?z) .
    """
    some = Example(EmbeddedEngine(), rules, a=[(0, seed)], b=[(seed, 1)], p=[])
    some.update(insert={"a": [(5, 6)]}, algorithm="dred-c")
    some.update(insert={"b": [(6, 7)]}, algorithm="dred-c")
    some.update(insert={"b": [(7, 8)], "a": [(9, 7)]}, algorithm="dred-c")
    before = some.rows("p")
    assert before >= {(5, 6), (5, 7), (5, 8), (9, 7), (9, 8)}
    some.update(delete={"b": [(7, 8)]}, algorithm="dred-c")
    assert some.rows("p") == before - {(5, 8), (9, 8)}


@pytest.mark.parametrize(
    ("limit", "value", "are_compiled"),
    [
        *[("MOST_FACTS", value, False) for value in (1, 4, 16, 40)],
        *[("MOST_ROWS", value, False) for value in (0, 10, 60)],
        *[("MOST_SEEDS", value, False) for value in (0, 2, 4)],
        *[("PAUSE_AFTER", value, True) for value in (1, 5)],
        ("MOST_CHUNKS", 3, True),
    ],
)
def test_limits_change_nothing_but_the_path(
    limit: str,
    value: int,
    monkeypatch: pytest.MonkeyPatch,
    compiled: list[bool],
    *,
    are_compiled: bool,
) -> None:
    monkeypatch.setattr(saturation, limit, value)
    for seed in range(3):
        play(seed)
    play(3, algorithm="dred")
    assert all(compiled) == are_compiled


@pytest.mark.parametrize("name", ["give_rows", "facts_of", "check", "keys_of"])
def test_an_error_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some = example({(1, 2), (2, 3), (3, 1), (3, 4)})
    before = counts(some)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    change: dict[str, dict[str, list[tuple[object, ...]]]]
    change = {"delete": {"edge": [(2, 3)]}, "insert": {"edge": [(4, 5)]}}
    with monkeypatch.context() as patch:
        patch.setattr(saturation, name, fail)
        with pytest.raises(MemoryError):
            some.update(**change, algorithm="dred-c")
    require_no_marks(some)
    assert counts(some) == before
    some.update(**change, algorithm="dred-c")
    assert counts(some) == counts(example({(1, 2), (3, 1), (3, 4), (4, 5)}))


def test_counts_below_zero_are_refused() -> None:
    some = example({(1, 2), (2, 3)})
    engine = some.materialisation.engine
    assert isinstance(engine, EmbeddedEngine)
    reach = engine.store.relations["reach"]
    reach.counter(1)[: reach.count] = 0
    with pytest.raises(EngineUseError, match="`reach` would fall below zero"):
        some.update(delete={"edge": [(1, 2)]}, algorithm="dred-c")
    require_no_marks(some)


def test_new_facts_make_relations_grow(compiled: list[bool]) -> None:
    chain = {(i, i + 1) for i in range(5)}
    some = example(chain)
    for node in range(5, NODES - 1):
        some.update(insert={"edge": [(node, node + 1)]}, algorithm="dred-c")
        chain.add((node, node + 1))
        assert counts(some) == counts(example(chain))
    assert all(compiled)


def test_dry_run_changes_nothing(compiled: list[bool]) -> None:
    some = example({(1, 2), (2, 3), (3, 1), (3, 4)})
    before = counts(some)
    outcome = some.plan(
        delete={"edge": [(2, 3)]}, insert={"edge": [(4, 5)]}, algorithm="dred-c"
    )
    assert outcome.report.removed
    assert outcome.report.added
    assert counts(some) == before
    assert all(compiled)


def test_rules_without_a_program(compiled: list[bool]) -> None:
    rules = RULES + "sum(?x, ?n) :- node(?x), ?n = ?x + 1 ."
    some = example({(1, 2), (2, 3)}, rules)
    # Edges reach no such rule, nodes do, also when both change together.
    both: dict[str, list[tuple[object, ...]]] = {"edge": [(3, 4)], "node": [(20,)]}
    some.update(insert=both, algorithm="dred-c")
    assert not all(compiled)
    compiled.clear()
    some.update(insert={"edge": [(4, 1)]}, algorithm="dred-c")
    assert all(compiled)
    compiled.clear()
    some.update(delete=both, algorithm="dred-c")
    assert not all(compiled)
    assert counts(some) == counts(example({(1, 2), (2, 3), (4, 1)}))
    assert some.rows("sum") == {(node, node + 1) for node in range(NODES)}


def test_plans_are_made_beforehand_for_many_facts(
    monkeypatch: pytest.MonkeyPatch, compiled: list[bool]
) -> None:
    monkeypatch.setattr(triggers, "FACTS_PER_RULE", 0)
    monkeypatch.setattr(triggers, "MOST_DERIVED", 100)
    reached = numbered(monkeypatch)
    some = example({(1, 2), (2, 3)})
    assert set(reached) >= {"edge", "node", *DERIVED}
    reached.clear()
    some.update(delete={"edge": [(1, 2)]}, algorithm="dred-c")
    assert not reached
    assert all(compiled)


def test_no_plans_are_made_beforehand_where_most_facts_are_derived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triggers, "FACTS_PER_RULE", 0)
    monkeypatch.setattr(triggers, "MOST_DERIVED", 1)
    reached = numbered(monkeypatch)
    example({(1, 2), (2, 3)})
    assert not reached


def numbered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations that triggers reach, as they are."""
    reached: list[str] = []
    number = triggers.Triggers._number

    def spy(self: triggers.Triggers, name: str) -> None:
        reached.append(name)
        number(self, name)

    monkeypatch.setattr(triggers.Triggers, "_number", spy)
    return reached


def test_reports(compiled: list[bool]) -> None:
    edges = {(1, 2), (2, 3), (3, 4), (1, 3)}
    change = {"delete": {"edge": [(1, 2), (2, 3)]}, "insert": {"edge": [(4, 1)]}}
    one = example(edges).update(**change, algorithm="dred-c").report
    assert all(compiled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saturation, "MOST_SEEDS", -1)
        other = example(edges).update(**change, algorithm="dred-c").report
    for mine, theirs in zip(one.strata, other.strata, strict=True):
        assert mine.path == ("compiled" if mine.rounds else "")
        assert theirs.path == ("batched" if theirs.rounds else "")
        assert numbers(mine) == numbers(theirs)
    assert sum(sum(each.seconds.values()) for each in one.strata) <= one.seconds


def numbers(stratum: StratumReport) -> tuple[int, ...]:
    """All that is reported but the path and seconds."""
    return (
        stratum.index,
        stratum.rounds,
        stratum.forward_instances,
        stratum.overdeleted,
        stratum.rederived,
        stratum.inserted,
    )
