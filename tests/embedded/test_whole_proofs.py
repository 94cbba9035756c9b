"""Small updates by B/F that are carried out as a whole end like those done in steps."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from engine_facts import facts_of
from equality_scenarios import NAMES, TrackedEquality
from evermat.engines.embedded import (
    at_once,
    kernels_updates,
    one_update,
    whole_updates,
)
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.lang.parser import parse_rules
from mutants import Mutant, fails, plant
from paper_examples import Example
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.maintenance.updates import Report, StratumReport
    from oracle import Fact

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    back(?x, ?y) :- reach(?x, ?y), reach(?y, ?x) .
    path(?x, ?y, ?z) :- edge(?x, ?y), reach(?y, ?z) .
    free(?x) :- node(?x), not back(?x, ?x) .
    lonely(?x) :- free(?x), not edge(?x, ?x) .
    near(?x, ?y) :- edge(?x, ?y), not back(?x, ?y) .
    near(?x, ?y) :- near(?y, ?x), not lonely(?x) .
    near(?x, ?z) :- near(?x, ?y), near(?y, ?z), free(?y) .
    twin(?x, ?y) :- edge(?z, ?x), edge(?z, ?y), ?x != ?y, ?z != 3 .
    turn(?x, ?y) :- twin(?x, ?y), edge(?x, ?z), ?y = ?z .
"""
DERIVED = ("reach", "back", "path", "free", "lonely", "near", "twin", "turn")
RELATIONS = ("edge", "node", *DERIVED)
ALL_GIVEN = ("edge", "node", "reach", "free", "near")
NODES = 9

EQUALITY_RULES = parse_rules("""
    same_as(?a, ?b) :- r(?x, ?a), r(?x, ?b) .
    s(?x, ?y) :- t(?x, ?y) .
    s(?x, ?z) :- s(?x, ?y), t(?y, ?z) .
    p(?x) :- s(?x, ?x) .
    p(?y) :- s(?x, ?y), p(?x), q(?y) .
    u(?x) :- q(?x), not p(?x) .
    v(?x, ?y) :- r(?x, ?y), q(?y) .
    v(?x, ?y) :- s(?x, ?y), not t(?x, ?y) .
    v(?x, ?y) :- v(?x, ?z), s(?z, ?y), q(?z) .
""")
EQUALITY_GIVEN = {"r": 2, "t": 2, "q": 1, "s": 2, "same_as": 2}


Numbers = tuple[str, tuple[int, ...]]
"""A fact about numbers."""


class Change(NamedTuple):
    """Facts that go and facts that come."""

    delete: set[Numbers]
    insert: set[Numbers]


def example(facts: set[Numbers], *, counters: bool) -> Example:
    some = Example(EmbeddedEngine(), RULES, counters=counters, edge=[], node=[])
    some.update(insert=by_name(facts), algorithm="remat")
    return some


def by_name(facts: set[Numbers]) -> dict[str, list[tuple[object, ...]]]:
    rows: dict[str, list[tuple[object, ...]]] = {}
    for name, row in sorted(facts):
        rows.setdefault(name, []).append(row)
    return rows


def random_facts(random_: random.Random, count: int) -> set[Numbers]:
    return {
        (name, tuple(random_.randrange(NODES) for _ in range(2 - (name in UNARY))))
        for name in random_.choices(ALL_GIVEN, (8, 3, 2, 1, 1), k=count)
    }


UNARY = {"node", "free"}


def random_change(random_: random.Random, facts: set[Numbers]) -> Change:
    gone = random_.sample(sorted(facts), min(len(facts), random_.randrange(4)))
    return Change(set(gone), random_facts(random_, random_.randrange(4)))


def in_steps(update: Callable[[], Report]) -> Report:
    """What an update does that is not carried out as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "MOST_CHANGED", -1)
        return update()


def numbers(stratum: StratumReport) -> tuple[int, ...]:
    """All that is reported but seconds."""
    return (
        stratum.index,
        stratum.rounds,
        stratum.forward_instances,
        stratum.backward_instances,
        stratum.overdeleted,
        stratum.rederived,
        stratum.proved,
        stratum.inserted,
    )


def require_no_marks(engine: EmbeddedEngine) -> None:
    """Sets that were taken for a time have left nothing behind."""
    for relation in engine.store.relations.values():
        assert (relation.status[: relation.count] < 4).all(), relation.name


def play(seed: int, updates: int = 6, *, counters: bool = False) -> None:
    """Some updates by B/F as a whole, in steps, and by starting again."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    facts = random_facts(random_, random_.randrange(6, 26))
    one, other = example(facts, counters=counters), example(facts, counters=counters)
    for _ in range(updates):
        change = random_change(random_, facts)
        request = {"delete": by_name(change.delete), "insert": by_name(change.insert)}
        whole = one.update(**request, algorithm="bf").report
        steps = in_steps(lambda r=request: other.update(**r, algorithm="bf").report)  # type: ignore[misc]
        assert [*map(numbers, whole.strata)] == [*map(numbers, steps.strata)]
        facts = (facts - change.delete) | change.insert
        fresh = example(facts, counters=counters)
        for name in RELATIONS:
            assert one.rows(name) == fresh.rows(name)
            if counters:
                assert one.counts(name) == fresh.counts(name)
        require_no_marks(one.materialisation.engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("counters", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_as_in_steps_and_from_scratch(
    seed: int, *, counters: bool, carried_out: list[bool]
) -> None:
    play(seed, counters=counters)
    assert any(carried_out)


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        *[("MOST_FACTS", value) for value in (1, 4, 16, 40, 100)],
        *[("PATIENCE_FOR_ALL", value) for value in (0, 10, 30, 100, 200)],
    ],
)
def test_what_is_given_up_leaves_no_trace(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch, carried_out: list[bool]
) -> None:
    monkeypatch.setattr(one_update, limit, value)
    monkeypatch.setattr(whole_updates, "LESS", 1)  # the next one is tried again
    monkeypatch.setattr(whole_updates, "LONGEST_PAUSE", 0)
    for seed in range(3):
        play(seed)
    assert not all(carried_out)


@pytest.mark.parametrize("name", ["give_rows", "facts_of"])
def test_an_error_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts: set[Numbers] = {("edge", (1, 2)), ("edge", (2, 3)), ("node", (3,))}
    some = example(facts, counters=False)
    engine = some.materialisation.engine
    before = facts_of(engine, engine.materialised)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    change = {"delete": {"edge": [(1, 2)]}, "insert": {"edge": [(3, 4)]}}
    with monkeypatch.context() as patch:
        patch.setattr(one_update, name, fail)
        with pytest.raises(MemoryError):
            some.update(**change, algorithm="bf")
    assert facts_of(engine, engine.materialised) == before
    require_no_marks(engine)  # type: ignore[arg-type]
    some.update(**change, algorithm="bf")
    assert some.rows("reach") == {(2, 3), (3, 4), (2, 4)}


def test_new_facts_get_rows_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = RULES.splitlines()[1:3]
    some = Example(EmbeddedEngine(), "\n".join(rules), counters=False, edge=[])
    some.update(insert={"edge": [(0, 1)]}, algorithm="remat")
    # The first facts make room for those that follow.
    for at in range(1, 8):
        some.update(insert={"edge": [(at, at + 1)]}, algorithm="bf")
    calls = []
    maintain = kernels_updates.maintain

    def noted(*arguments: Any) -> int:
        calls.append(arguments)
        return maintain(*arguments)

    monkeypatch.setattr(one_update, "maintain", noted)
    some.update(insert={"edge": [(8, 9)]}, algorithm="bf")
    assert len(calls) == 1
    assert some.rows("reach") == {(x, y) for y in range(10) for x in range(y)}
    some.update(delete={"edge": [(0, 1)]}, algorithm="bf")
    assert some.rows("reach") == {(x, y) for y in range(10) for x in range(1, y)}


# ---------------------------------------------------------------- with equality


def equality_facts(random_: random.Random, count: int) -> set[Fact]:
    return {
        (name, tuple(random_.choice(NAMES) for _ in range(EQUALITY_GIVEN[name])))
        for name in random_.choices([*EQUALITY_GIVEN], (4, 8, 3, 1, 1), k=count)
    }


def play_with_equality(seed: int, updates: int = 4) -> None:
    """Updates that merge and split cliques, compared with the axioms and with steps."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    facts = equality_facts(random_, random_.randrange(8, 20))
    one, other = TrackedEquality(EmbeddedEngine()), TrackedEquality(EmbeddedEngine())
    first = Update(insert=frozenset(facts), add_rules=tuple(EQUALITY_RULES))
    for each in (one, other):
        each.apply(first, "bf")
    for _ in range(updates):
        gone = random_.sample(sorted(facts, key=repr), min(len(facts), 2))
        come = equality_facts(random_, random_.randrange(3))
        update = Update(frozenset(gone), frozenset(come))
        whole = one.apply(update, "bf").report
        steps = in_steps(lambda u=update: other.apply(u, "bf").report)  # type: ignore[misc]
        assert [*map(numbers, whole.strata)] == [*map(numbers, steps.strata)]
        facts = (facts - set(gone)) | come
        require_no_marks(one.engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(5))
def test_with_equality(seed: int, carried_out: list[bool]) -> None:
    play_with_equality(seed)
    assert any(carried_out)


# ----------------------------------------------------------------- planted bugs

MUTANTS = (
    Mutant(
        "facts are taken to be given that the update withdraws",
        "whole_updates",
        "explicit = None if counting else run.explicit",
        "explicit = None if counting else engine.explicit",
        "bf",
    ),
    Mutant(
        "what remains proves facts of the stratum, proved or not",
        "embedded.whole_updates",
        "table(remaining, possible, changed, absent, proved),",
        "table(remaining, possible, changed, absent),",
        "bf",
    ),
    Mutant(
        "proofs begin with what held before the update",
        "embedded.whole_updates",
        '("-", MATERIALISED, ("-", deleted, added))',
        "MATERIALISED",
        "bf",
    ),
    Mutant(
        "nobody looks for what facts may follow from",
        "embedded.wiring",
        "                yield _slot(position, BACKWARD), query\n",
        "                pass\n",
        "bf",
    ),
    Mutant(
        "nobody asks nonrecursive rules",
        "embedded.wiring",
        "                yield _slot(position, REDERIVE), query\n",
        "                pass\n",
        "bf",
    ),
    Mutant(
        "what an update has changed already is overlooked",
        "embedded.one_update",
        "self.state[[DELETIONS, ADDITIONS]] = self.before",
        "self.before = (0, 0)",
        "bf",
    ),
    Mutant(
        "nobody is told of rows that facts got on the way",
        "embedded.wiring",
        "                relation.note_appended(line[0], has_other=line[1] != 0)\n",
        "                pass\n",
        "bf",
    ),
    Mutant(
        "facts that get rows are put into one index only",
        "embedded.wiring",
        "    return count, other, count\n",
        "    return count, 0, count\n",
        "bf",
    ),
    Mutant(
        "facts that came back are left in the set of those that went",
        "embedded.engine",
        "self.store.show(come, zeros=bits)",
        "self.store.show(come)",
        "bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(game, seed) for seed in range(30) for game in GAMES)


GAMES = (play, play_with_equality)
