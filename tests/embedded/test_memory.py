"""What the C library is told about freed memory."""

from __future__ import annotations

import sys

import pytest

from evermat.engines.embedded import memory


class Library:
    """Takes note of what it is told."""

    def __init__(self) -> None:
        self.options: dict[int, int] = {}
        self.trims = 0

    def mallopt(self, option: int, value: int) -> int:
        """Set an option."""
        self.options[option] = value
        return 1

    def malloc_trim(self, pad: int) -> int:
        """Return memory, leaving nothing."""
        assert pad == 0
        self.trims += 1
        return 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """Stands in for the C library, in an environment without settings."""
    stand_in = Library()
    monkeypatch.setattr(memory, "_library", lambda: stand_in)
    for name in memory.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return stand_in


def test_freed_memory_is_kept(library: Library) -> None:
    memory.keep_freed.__wrapped__()
    assert set(library.options) == {-1, -3, -8}


def test_settings_of_users_stay(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    memory.keep_freed.__wrapped__()
    assert not library.options


def test_only_large_arrays_return_memory(library: Library) -> None:
    memory.make_room(memory.LARGE - 1)
    assert library.trims == 0
    memory.make_room(memory.LARGE)
    assert library.trims == 1


def test_nothing_is_asked_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_library", lambda: None)
    memory.keep_freed.__wrapped__()
    memory.make_room(memory.LARGE)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_the_library_takes_the_options() -> None:
    memory.keep_freed.__wrapped__()
    memory.make_room(memory.LARGE)
