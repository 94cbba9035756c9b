"""Small updates by B/F end like those whose rules are applied in turn."""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import paper_backward_forward
from engine_facts import facts_of
from engine_ways import treat_small_like_large
from equality_scenarios import NAMES, TrackedEquality
from evermat.engines.embedded import backward
from evermat.engines.embedded.backward import Prover, SearchedRules
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.lang.parser import parse_rules
from evermat.maintenance.backward_forward import own_support
from paper_examples import Example
from planting import Mutant, fails, plant
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.maintenance.update import Report, StratumReport
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
    """What an update does whose rules are applied in turn."""
    with pytest.MonkeyPatch.context() as patch:
        treat_small_like_large(patch)
        return update()


def numbers(stratum: StratumReport) -> tuple[int, ...]:
    """What is reported, but for how proofs were searched for, and seconds."""
    return (
        stratum.index,
        stratum.overdeleted,
        stratum.rederived,
        stratum.inserted,
    )


def require_no_marks(engine: EmbeddedEngine) -> None:
    """Sets that were taken for a time have left nothing behind."""
    for relation in engine.store.relations.values():
        assert (relation.status[: relation.count] < 4).all(), relation.name


def play(
    seed: int, updates: int = 6, *, counters: bool = False, algorithm: str = "bf"
) -> None:
    """Some updates by B/F in two ways, and by starting again."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    facts = random_facts(random_, random_.randrange(6, 26))
    one, other = example(facts, counters=counters), example(facts, counters=counters)
    for _ in range(updates):
        change = random_change(random_, facts)
        request = {"delete": by_name(change.delete), "insert": by_name(change.insert)}
        request["algorithm"] = algorithm  # type: ignore[assignment]
        whole = one.update(**request).report  # type: ignore[arg-type]
        steps = in_steps(lambda r=request: other.update(**r).report)  # type: ignore[misc]
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
def test_as_in_steps_and_from_scratch(seed: int, *, counters: bool) -> None:
    play(seed, counters=counters)


@pytest.mark.parametrize(
    ("limit", "value", "are_compiled"),
    [
        *[("MOST_FACTS", value, False) for value in (1, 4, 16)],
        ("MOST_ROWS", 0, False),
        ("MOST_BATCH", 1, False),
        ("PAUSE_AFTER", 1, True),
        ("SHALLOW", 2, True),
    ],
)
def test_limits_change_nothing_but_the_path(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch, *, are_compiled: bool
) -> None:
    ways: list[bool] = []
    prover = backward.Prover.prove

    def spy(self: backward.Prover, *given: Any) -> object:
        found = prover(self, *given)
        if backward.MOST_BATCH > 0:
            ways.append(found is not None)
        return found

    monkeypatch.setattr(backward.Prover, "prove", spy)
    monkeypatch.setattr(backward, limit, value)
    for seed in range(3):
        play(seed)
        play(seed, counters=True, algorithm="bf-c")
    assert any(ways)
    assert all(ways) == are_compiled


def test_a_stack_that_may_not_grow_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backward, "SHALLOW", 4)
    monkeypatch.setattr(backward, "DEEPEST", 4)
    for seed in range(3):
        play(seed)


@pytest.mark.parametrize("name", ["keys_of", "facts_of", "check_interrupts"])
def test_an_error_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts: set[Numbers] = {("edge", (x, x + 1)) for x in range(6)} | {("edge", (0, 3))}
    some = example(facts, counters=False)
    engine = some.materialisation.engine
    before = facts_of(engine, engine.materialised)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    change = {"delete": {"edge": [(1, 2)]}}
    with monkeypatch.context() as patch:
        patch.setattr(backward, "PAUSE_AFTER", 1)
        patch.setattr(backward, name, fail)
        with pytest.raises(MemoryError):
            some.update(**change, algorithm="bf")
    assert facts_of(engine, engine.materialised) == before
    require_no_marks(engine)  # type: ignore[arg-type]
    some.update(**change, algorithm="bf")
    assert some.rows("edge") == {row for _, row in facts} - {(1, 2)}


@pytest.mark.parametrize("algorithm", ["bf", "bf-c"])
@pytest.mark.parametrize("seed", range(3))
def test_searches_are_as_short_as_those_of_the_paper(algorithm: str, seed: int) -> None:
    random_ = random.Random(seed)  # noqa: S311  no secret
    edges = {(random_.randrange(300), random_.randrange(300)) for _ in range(280)}
    gone = random_.sample(sorted(edges), 12)
    literal = paper_backward_forward.Closure(edges, gone)
    some = Example(EmbeddedEngine(), paper_backward_forward.RULES, edge=sorted(edges))
    report = some.update(delete={"edge": gone}, algorithm=algorithm).report
    assert some.rows("reach") == literal.known - literal.deleted
    assert report.backward_instances <= 2 * literal.backward + len(gone)


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
def test_with_equality(seed: int) -> None:
    play_with_equality(seed)


# ----------------------------------------------------------------- planted bugs

MUTANTS = (
    Mutant(
        "facts are taken to be given that the update withdraws",
        own_support,
        lambda run: run.explicit,
        lambda run: run.engine.explicit,
        "bf",
    ),
    Mutant(
        "what remains proves facts of the stratum, proved or not",
        Prover._seen_by,
        lambda table, positive, negative, changed, proved: table(
            positive, negative, changed, 0, proved
        ),
        lambda table, positive, negative, changed: table(
            positive, negative, changed, 0
        ),
        "bf",
    ),
    Mutant(
        "proofs begin with what held before the update",
        Prover._seen_by,
        lambda sets, views, marker: [sets.common_code(view, marker) for view in views],
        lambda sets, views, marker: [
            1,
            *(sets.common_code(view, marker) for view in views[1:]),
        ],
        "bf",
    ),
    Mutant(
        "body facts of the stratum are taken to be from below",
        backward._bodies,
        lambda pattern: pattern.local,
        lambda pattern: not pattern.local,
        "bf",
    ),
    Mutant(
        "nonrecursive rules are not asked",
        SearchedRules.__init__,
        lambda rules, own: [rules.delta, rules.rederive, own],
        lambda rules: [rules.delta, rules.rederive, None],
        "bf",
    ),
    Mutant(
        "what is proved is not told",
        backward._OneSearch.run,
        lambda growing, some: growing.take_over(some),
        algorithm="bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(play, seed) for seed in range(30))
