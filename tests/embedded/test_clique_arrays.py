"""Cliques that are copied, changed and dropped again and again, against plain sets."""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evermat.algebra.equality import UnequalValuesError
from evermat.engines.embedded.dictionary import Dictionary
from evermat.engines.embedded.union_find import CliqueArrays, Cliques
from evermat.values import Kind
from planting import Mutant, fails, plant

NAMES = 24
MOVES = 60
GAMES = 12

Sets = tuple[frozenset[int], ...]
"""The clique of each constant."""

MUTANTS = (
    Mutant(
        "a spare keeps the rings of what it was",
        CliqueArrays.correct,
        lambda other: other.ring,
        lambda self: self.ring,
        algorithm="bf",
    ),
    Mutant(
        "a spare is taken for a copy of something else",
        CliqueArrays._from_spare,
        lambda self, spare: self.is_copy_of(spare),
        lambda: True,
        algorithm="bf",
    ),
    Mutant(
        "arrays become a spare while somebody reads them",
        Cliques._writing,
        lambda self, size: self._held.twin(size),
        lambda self, size: (
            self._held.spares.append(self._held.arrays) or self._held.twin(size)
        ),
        algorithm="bf",
    ),
    Mutant(
        "a blank spare keeps what was equal",
        CliqueArrays.correct,
        lambda kernels_cliques: kernels_cliques.copy_places(...),
        lambda other, kernels_cliques: (
            other.links.size and kernels_cliques.copy_places(...)
        ),
        algorithm="bf",
    ),
)


def _dictionary() -> Dictionary:
    dictionary = Dictionary()
    dictionary.encode(pa.array([f"n{at}" for at in range(NAMES)]))
    return dictionary


def _united(sets: Sets, one: int, other: int) -> Sets:
    both = sets[one] | sets[other]
    return tuple(both if at in both else clique for at, clique in enumerate(sets))


def _first(clique: frozenset[int]) -> int:
    """The one whose name comes first: `n10` is before `n2`."""
    return min(clique, key=str)


def _agree(cliques: Cliques, sets: Sets) -> None:
    every = np.arange(NAMES, dtype=np.uint32)
    assert cliques.map(every).tolist() == [_first(clique) for clique in sets]
    for one in {_first(clique) for clique in sets}:
        sizes, members = cliques.members(np.array([one], np.uint32))
        assert sizes.tolist() == [len(sets[one])]
        assert sorted(members.tolist()) == sorted(sets[one])


class _Game:
    """Some cliques, each beside what they ought to be."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.dictionary = _dictionary()
        self.spares: list[CliqueArrays] = []
        self.used = 0
        self.kept = [self._blank()]

    def _blank(self) -> tuple[Cliques, Sets]:
        blank = Cliques.without_any(self.dictionary, self.spares)
        return blank, tuple(frozenset([at]) for at in range(NAMES))

    def play(self) -> None:
        """Make random moves, and compare everything after each of them."""
        for _ in range(MOVES):
            at = self.random.randrange(len(self.kept))
            move = self.random.choice((self.copy, self.unite, self.split, self.drop))
            before = len(self.spares)
            move(at)
            self.used += len(self.spares) < before
            for cliques, sets in self.kept:
                _agree(cliques, sets)

    def copy(self, at: int) -> None:
        """Have a copy beside the original."""
        cliques, sets = self.kept[at]
        self.kept.append((cliques.copy(), sets))

    def unite(self, at: int) -> None:
        """Merge two cliques."""
        cliques, sets = self.kept[at]
        one, other = self.random.sample(range(NAMES), 2)
        cliques.unite(
            np.array([one], np.uint32), np.array([other], np.uint32), frozenset()
        )
        self.kept[at] = cliques, _united(sets, one, other)

    def split(self, at: int) -> None:
        """Let a clique fall apart, but for one pair; the original is kept, or not."""
        cliques, sets = self.kept[at]
        clique = sorted(self.random.choice(sets))
        source, parts = self._blank()
        if len(clique) > 1:
            one, other = self.random.sample(clique, 2)
            pair = np.array([one], np.uint32), np.array([other], np.uint32)
            source.unite(*pair, frozenset())
            parts = _united(parts, one, other)
        after = cliques.copy()
        after.assign(np.array(clique, np.uint32), source)
        new = tuple(
            parts[each] if each in clique else sets[each] for each in range(NAMES)
        )
        if self.random.random() < 0.5:
            self.kept[at] = after, new
        else:
            self.kept.append((after, new))

    def drop(self, at: int) -> None:
        """Leave the arrays to others."""
        del self.kept[at]
        if not self.kept:
            self.kept.append(self._blank())


def _play(seed: int) -> None:
    _Game(seed).play()


@pytest.mark.parametrize("seed", range(GAMES))
def test_law_copies_are_what_they_would_be_on_their_own(seed: int) -> None:
    game = _Game(seed)
    game.play()
    assert game.used, "no spare was used"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(_play, seed) for seed in range(GAMES))


def test_arrays_that_were_left_half_written_are_not_used_again() -> None:
    dictionary = _dictionary()
    spares: list[CliqueArrays] = []
    integers = dictionary.encode(pa.array([f"{10**12}", f"{10**13}"]))
    values = frozenset({Kind.STRING})
    cliques = Cliques.without_any(dictionary, spares)
    with pytest.raises(UnequalValuesError):
        cliques.unite(integers[:1], integers[1:], values)
    del cliques
    assert not spares
