"""Memory of large arrays is used again, but never by two of them at a time."""

# ruff: noqa: N803  mutants speak of classes

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from evermat.engines.embedded import arrays as array_memory
from evermat.engines.embedded.arrays import KeptMemory, empty, fitted
from planting import Mutant, assign, fails, plant

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux only"
)

PAGE = 1 << 12


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptMemory:
    """Nothing is kept yet, little is large, and the process may grow."""
    memory = KeptMemory(64 * PAGE)
    monkeypatch.setattr(array_memory, "LARGE", PAGE)
    monkeypatch.setattr(array_memory, "kept_memory", lambda: memory)
    monkeypatch.setattr(array_memory, "_growth", lambda: 1 << 40)
    return memory


def place(array: np.ndarray) -> int:
    address: int = array.ctypes.data
    return address


def play(seed: int) -> None:
    """Make arrays and drop them; whatever is left has what was written to it."""
    luck = random.Random(seed)  # noqa: S311  a seeded game, no secret
    memory = KeptMemory(luck.choice([0, 8, 64]) * PAGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_memory, "LARGE", PAGE)
        patch.setattr(array_memory, "kept_memory", lambda: memory)
        patch.setattr(array_memory, "_growth", lambda: luck.randint(-4, 64) * PAGE)
        arrays: list[tuple[int, np.ndarray]] = []
        for number in range(60):
            size = luck.randint(1, 16 * PAGE)
            array = empty((2, size), np.uint16, luck.choice([1, 4]))
            assert array.shape == (2, size)
            array[:] = number
            # A part of an array holds all of it.
            low = luck.randrange(size)
            arrays.append((number, luck.choice([array, array[1], array[:, low:]])))
            del array
            luck.shuffle(arrays)
            del arrays[luck.randint(1, 8) :]
            assert all((each == written).all() for written, each in arrays)
            assert memory.size <= 64 * PAGE


@pytest.mark.parametrize("seed", range(40))
def test_arrays_keep_what_is_written_to_them(seed: int) -> None:
    play(seed)


def test_memory_is_used_again() -> None:
    first = empty(PAGE, np.uint64)
    before = place(first)
    part = first[5:]
    del first
    second = empty(PAGE, np.uint64)
    assert place(second) != before
    del part
    assert place(empty(PAGE - 100, np.uint64)) == before


def test_small_arrays_are_not_kept(kept: KeptMemory) -> None:
    empty(PAGE - 1, np.uint8)[:] = 1
    assert kept.size == 0
    empty(PAGE, np.uint8)[:] = 1
    assert kept.size == PAGE


def test_what_was_never_written_to_does_not_count(kept: KeptMemory) -> None:
    empty(1 << 28, np.uint8, 4)
    assert kept.size == 0


def test_arrays_are_not_given_far_more_than_they_ask_for() -> None:
    large = empty(64 * PAGE, np.uint8)
    before = place(large)
    del large
    assert place(empty(PAGE, np.uint8)) != before
    assert place(empty(60 * PAGE, np.uint8)) == before


def test_no_more_is_kept_than_agreed(kept: KeptMemory) -> None:
    arrays = [empty(16 * PAGE, np.uint8) for _ in range(9)]
    for array in arrays:
        array[:] = 1
    del array, arrays
    assert kept.size == 64 * PAGE


def test_what_is_kept_is_returned_before_the_process_grows(
    kept: KeptMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = [empty(16 * PAGE, np.uint8) for _ in range(3)]
    for array in arrays:
        array[:] = 1
    del array, arrays
    monkeypatch.setattr(array_memory, "_growth", lambda: 4 * PAGE)
    empty(2 * PAGE, np.uint8)
    assert kept.size == 48 * PAGE
    empty(120 * PAGE, np.uint8, 4)
    assert kept.size == 16 * PAGE


def test_kept_memory_is_given_up_if_there_is_no_other(
    kept: KeptMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(4 * PAGE, np.uint8)[:] = 1
    mapped = array_memory._mapped  # noqa: SLF001

    def refuse(size: int, *, has_room: bool) -> object:
        if kept.size:
            raise OSError(12, "Cannot allocate memory")
        return mapped(size, has_room=has_room)

    monkeypatch.setattr(array_memory, "_mapped", refuse)
    assert empty(64 * PAGE, np.uint8).size == 64 * PAGE


def test_too_much_is_refused_as_numpy_does() -> None:
    with pytest.raises(MemoryError, match="bytes"):
        empty(1 << 60, np.uint8)


def test_growth_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = array_memory._growth()  # noqa: SLF001
    some = np.ones(1 << 24, np.uint8)
    assert array_memory._growth() <= before  # noqa: SLF001
    assert some.all()


def test_fitted_arrays_hold_little_for_nothing() -> None:
    array = np.arange(100)
    assert fitted(array, 60).base is array
    assert fitted(array, 40).base is None
    assert fitted(array, 40).tolist() == list(range(40))


# ----------------------------------------------------------------- planted bugs

MUTANTS = (
    Mutant(
        "memory is given to two arrays",
        KeptMemory.take,
        lambda self, best: self._kept.remove(best),
    ),
    Mutant(
        "memory is kept while a part of an array is in use",
        array_memory.empty,
        lambda weakref, array, kept, memory: assign(
            weakref.finalize(array, kept.keep, memory).atexit,
            False,  # noqa: FBT003
        ),
        lambda kept, memory: kept.keep(memory),
    ),
    Mutant(
        "arrays are given less than they ask for",
        KeptMemory.take,
        lambda size, kept, WASTE: size <= len(kept.memory) <= WASTE * size,
        lambda kept, WASTE, size: len(kept.memory) <= WASTE * size,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(play, seed) for seed in range(40))
