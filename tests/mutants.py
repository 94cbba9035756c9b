"""Mistakes to be planted into the running code; see docs/testing.md."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import pytest


@dataclass(frozen=True)
class Mutant:
    """A mistake somebody could make.

    Attributes:
        module: where.
        old, new: the text that is replaced, which occurs exactly once, and by what.
        algorithm: the algorithm that goes wrong.
    """

    name: str
    module: str
    old: str
    new: str
    algorithm: str


def plant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the changed source text in place of the module's functions and methods."""
    module = importlib.import_module(mutant.module)
    source = inspect.getsource(module)
    assert source.count(mutant.old) == 1, "the code has changed: adapt the mutant"
    changed: dict[str, object] = {"__name__": module.__name__}
    exec(compile(source.replace(mutant.old, mutant.new), "mutant", "exec"), changed)  # noqa: S102
    replace_code(module, changed, monkeypatch)


def fails(game: Callable[[int], None], seed: int) -> bool:
    """Whether a game of random moves comes to a bad end, whichever it is."""
    try:
        game(seed)
    except Exception:  # noqa: BLE001  any failure is a finding
        return True
    return False


def replace_code(
    module: ModuleType, changed: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other modules hold on to the old objects, so only their code is exchanged."""
    for name, old in list(vars(module).items()):
        new = changed.get(name)
        if getattr(old, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(old) and inspect.isfunction(new):
            _replace_function(old, new, monkeypatch)
        elif inspect.isclass(old) and inspect.isclass(new):
            for attribute, method in list(vars(old).items()):
                other = vars(new).get(attribute)
                if inspect.isfunction(method) and inspect.isfunction(other):
                    _replace_function(method, other, monkeypatch)


def _replace_function(
    old: object, new: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A decorated function wraps the one that was written.
    while hasattr(old, "__wrapped__") and hasattr(new, "__wrapped__"):
        old, new = old.__wrapped__, new.__wrapped__
    if old.__code__.co_freevars == new.__code__.co_freevars:  # type: ignore[attr-defined]
        monkeypatch.setattr(old, "__code__", new.__code__)  # type: ignore[attr-defined]
