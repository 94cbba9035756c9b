"""What was made for rules, as long as updates ask for it.

Engines do not hear of rules that leave a program. What they keep for rules would live
as long as the engine, and would grow without end where rules change for years.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

UPDATES = 16
"""What was not asked for during so many updates is forgotten, after twice as many at
the latest."""


class Recent(Generic[Key, Value]):
    """A dictionary that forgets what nothing has asked for lately."""

    def __init__(self) -> None:
        self._new: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._updates = 0

    def get(self, key: Key) -> Value | None:
        """What there is for a key, if it was asked for lately."""
        found = self._new.get(key)
        if found is None and key in self._old:
            found = self._new[key] = self._old.pop(key)
        return found

    def __setitem__(self, key: Key, value: Value) -> None:
        self._new[key] = value

    def clear(self) -> None:
        """Forget everything."""
        self._new.clear()
        self._old.clear()

    def note_update(self) -> None:
        """An update is over."""
        self._updates += 1
        if self._updates % UPDATES == 0:
            self._old, self._new = self._new, {}
