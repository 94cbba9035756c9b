"""Given facts that go where names are equal: compiled code ends like the steps do."""

# ruff: noqa: SLF001, N803  mutants are made in private functions, and speak of classes

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

import equality_skeletons
from equality_scenarios import NAMES, Scenario, TrackedEquality, scenario_of
from evermat.algebra.abilities import UnequalValuesError
from evermat.engines.embedded import equality_deletion
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.equality_component import ComponentWires
from evermat.engines.embedded.equality_deletion import Withdrawals, _OneWithdrawal
from evermat.engines.embedded.kernels import (
    equality_deletion as kernels_equality_deletion,
)
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import TRIPLE
from evermat.maintenance.equality.update import EqualityUpdate
from planting import Mutant, fails, plant
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra.abilities import Withdrawal

REFUSED = (EqualityError, StratificationError, UnequalValuesError)


@pytest.fixture(autouse=True)
def done(monkeypatch: pytest.MonkeyPatch) -> list[Withdrawal | None]:
    """What compiled code was asked for and has done."""
    found: list[Withdrawal | None] = []
    run = Withdrawals.run

    def noted(self: Withdrawals, *args: object) -> object:
        done = run(self, *args)  # type: ignore[arg-type]
        found.append(None if done is None else done[0])
        return done

    monkeypatch.setattr(Withdrawals, "run", noted)
    return found


def stories(seed: int) -> Iterator[Scenario]:
    """Programs with equality that do not speak of triples."""
    for story in (scenario_of(seed), equality_skeletons.scenario_of(seed)):
        atoms = {
            atom.predicate
            for rule in story.rules
            for atom in (rule.head, *rule.positive_atoms())
        }
        if TRIPLE not in atoms:
            yield story


def play(seed: int) -> None:
    """Delete facts, put some of them back, and compare with the axioms each time."""
    random = Random(seed)  # noqa: S311  tests are to be repeatable
    for story in stories(seed):
        tracked = TrackedEquality(EmbeddedEngine())
        facts = frozenset(fact for fact in story.facts if fact[0] != TRIPLE)
        try:
            tracked.apply(Update(insert=facts, add_rules=story.rules), "remat")
            for _ in range(5):
                there = sorted(tracked.explicit, key=repr)
                count = min(len(there), random.choice([1, 1, 2, 3, 5]))
                gone = frozenset(random.sample(there, count))
                tracked.apply(Update(delete=gone), "bf")
                require_no_marks(tracked)
                back = frozenset(f for f in gone if random.random() < 0.6)
                tracked.apply(Update(insert=back), "bf")
        except REFUSED:
            continue


def require_no_marks(tracked: TrackedEquality) -> None:
    """Status bits that were taken for a time have left nothing behind."""
    engine = tracked.engine
    assert isinstance(engine, EmbeddedEngine)
    for relation in engine.store.relations.values():
        assert (relation.status[: relation.count] < 4).all(), relation.name


@pytest.mark.parametrize("first", range(0, 30, 6))
def test_oracle_withdrawals(first: int, done: list[Withdrawal | None]) -> None:
    for seed in range(first, first + 6):
        play(seed)
    assert sum(each is not None for each in done) > 10


def test_the_random_stories_reach_every_part(done: list[Withdrawal | None]) -> None:
    for seed in range(12):
        play(seed)
    ours = [each for each in done if each is not None]
    assert any(each.proved for each in ours)
    assert any(each.added for each in ours)
    assert any(not each.given.is_empty() for each in ours)
    assert any(not each.implied.is_empty() for each in ours)
    assert any(not each.not_implied.is_empty() for each in ours)
    about = [each.about_moved for each in ours]
    assert any(each is not None and not each.is_empty() for each in about)


def test_facts_about_split_cliques_may_be_too_many(
    monkeypatch: pytest.MonkeyPatch, done: list[Withdrawal | None]
) -> None:
    monkeypatch.setattr(equality_deletion, "PATIENCE_FOR_ALL", 24)
    for seed in range(12):
        play(seed)
    assert any(each is not None and each.about_moved is None for each in done)


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        *[("MOST_FACTS", value) for value in (1, 3, 6, 12)],
        *[("PATIENCE_FOR_ALL", value) for value in (0, 3, 10, 30, 60)],
        ("MOST_TRIES", 1),
    ],
)
def test_what_is_given_up_leaves_no_trace(
    limit: str,
    value: int,
    monkeypatch: pytest.MonkeyPatch,
    done: list[Withdrawal | None],
) -> None:
    monkeypatch.setattr(equality_deletion, limit, value)
    for seed in range(5):
        play(seed)
    assert None in done


def test_what_was_too_much_is_not_tried_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[int] = []
    search = kernels_equality_deletion.search_doubts

    def noted(task: int) -> int:
        tries.append(task)
        return search(task)

    monkeypatch.setattr(equality_deletion, "search_doubts", noted)
    monkeypatch.setattr(equality_deletion, "PATIENCE_FOR_ALL", -1)
    tracked = _merged()
    for fact in sorted(tracked.explicit, key=repr)[:3]:
        tracked.apply(Update(delete=frozenset({fact})), "bf")
    assert len(tries) == 1


def _merged() -> TrackedEquality:
    """Two names for the same, by a rule, and facts about both."""
    a, b, c = NAMES[:3]
    rules = parse_rules("?x ≈ ?y :- r(?z, ?x), r(?z, ?y) .  p(?x) :- q(?x) .")
    tracked = TrackedEquality(EmbeddedEngine())
    facts = {("r", (c, a)), ("r", (c, b)), ("q", (a,)), ("q", (b,))}
    first = Update(insert=frozenset(facts), add_rules=tuple(rules))
    tracked.apply(first, "bf")
    return tracked


_SPLIT = Update(delete=frozenset({("r", (NAMES[2], NAMES[1]))}))


def test_a_clique_is_split(done: list[Withdrawal | None]) -> None:
    tracked = _merged()
    assert tracked.pairs()
    tracked.apply(_SPLIT, "bf")
    assert not tracked.pairs()
    assert len(done) == 1
    assert done[0] is not None


def test_a_split_clique_splits_another(done: list[Withdrawal | None]) -> None:
    """Only while c and d are the same, one thing has two values of a function."""
    a, b, c, d = NAMES[:4]
    tracked = TrackedEquality(EmbeddedEngine())
    facts = {("r", (c, a)), ("r", (d, b)), ("same_as", (c, d)), ("q", (a,))}
    rules = parse_rules("?x ≈ ?y :- r(?z, ?x), r(?z, ?y) .  p(?x) :- q(?x) .")
    tracked.apply(Update(insert=frozenset(facts), add_rules=tuple(rules)), "bf")
    assert (a, b) in tracked.pairs()
    tracked.apply(Update(delete=frozenset({("same_as", (c, d))})), "bf")
    assert not tracked.pairs()
    assert done[-1] is not None


@pytest.mark.parametrize("name", ["mark_given", "search_doubts", "facts_of"])
def test_an_error_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tracked = _merged()

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(equality_deletion, name, fail)
        with pytest.raises(MemoryError):
            tracked.apply(_SPLIT, "bf")
    require_no_marks(tracked)
    tracked.check()
    tracked.apply(_SPLIT, "bf")


MUTANTS = (
    Mutant(
        "cliques stay what they were",
        _OneWithdrawal._mark,
        lambda after, cliques, nodes, proved: after.assign(
            cliques.members(nodes)[1], proved
        ),
        algorithm="bf",
    ),
    Mutant(
        "names are looked up in the component only",
        _OneWithdrawal._mark,
        lambda self, task: self.wires.look_everywhere(task),
        algorithm="bf",
    ),
    Mutant(
        "facts that nothing proves may prove others",
        Withdrawals._table,
        lambda bits, PROVED: bits[PROVED],
        lambda possible: possible,
        algorithm="bf",
    ),
    Mutant(
        "what was deleted still counts where rules go on from it",
        Withdrawals._table,
        lambda MATERIALISED, deleted: ("-", MATERIALISED, deleted),
        lambda deleted: deleted,
        algorithm="bf",
    ),
    Mutant(
        "nobody asks what facts may follow from",
        ComponentWires.__init__,
        lambda rules: rules.checking.backward,
        lambda rules: rules.checking_alone.rederive,
        algorithm="bf",
    ),
    Mutant(
        "derived facts are taken for told ones",
        ComponentWires._traits,
        lambda name, rules: name in rules.derivable.relations,
        lambda: False,
        algorithm="bf",
    ),
    Mutant(
        "facts that follow from one given fact are overlooked",
        ComponentWires.__init__,
        lambda rules: rules.checking_alone.delta,
        lambda rules: rules.checking_alone.rederive,
        algorithm="bf",
    ),
    Mutant(
        "facts about cliques that fall apart are overlooked",
        _OneWithdrawal._found,
        lambda self, IN_ABOUT: self._facts(IN_ABOUT),
        lambda self, IN_GIVEN: self._facts(IN_GIVEN),
        algorithm="bf",
    ),
    Mutant(
        "nobody takes note of implied facts",
        EqualityUpdate.withdraw,
        lambda self, done: self._change_implied(done.not_implied, done.implied),
        algorithm="bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(play, seed) for seed in range(60))
