"""Tables of a configuration, read entry by entry.

What is wrong is noted and reading goes on, so that one look shows all problems.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from evermat.pipeline.problems import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.pipeline.toml_places import Places, Route

T = TypeVar("T")

_NAMES: dict[type, str] = {
    str: "a text", int: "a whole number", bool: "true or false",
    dict: "a table", list: "a list", float: "a number",
}  # fmt: skip


class WrittenFloat(float):
    """A number of a configuration that knows how it was written.

    A bound of `0.1` is a tenth, which no float is.
    """

    def __new__(cls, text: str) -> Self:
        """Read a number with a point or an exponent."""
        number = super().__new__(cls, text)
        number.exact = Decimal(text)
        return number

    exact: Decimal


@dataclass(slots=True)
class Problems:
    """All that is wrong with a configuration."""

    places: Places
    found: list[ConfigError] = field(default_factory=list)

    def add(
        self, route: Route, message: str, *, remark: str = "", advice: str | None = None
    ) -> None:
        """Note a problem at an entry."""
        label = self.places.label(route, remark)
        self.found.append(ConfigError(message, labels=(label,), help=advice))


class Section:
    """A table of the configuration."""

    def __init__(
        self, content: dict[str, Any], route: Route, problems: Problems
    ) -> None:
        self._content = content
        self.route = route
        self.problems = problems
        self._asked: list[str] = []

    @property
    def name(self) -> str:
        """How messages call it: `source 2`."""
        words = [str(s + 1) if isinstance(s, int) else s for s in self.route]
        return " ".join(words) or "the configuration"

    @property
    def keys(self) -> list[str]:
        """The entries there are."""
        return list(self._content)

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def problem(self, key: str, message: str, advice: str | None = None) -> None:
        """Note a problem with an entry."""
        self.problems.add((*self.route, key), message, advice=advice)

    # ------------------------------------------------------------------- entries

    def get(self, key: str, kind: type[T], default: T) -> T:
        """An entry of a type, or the default."""
        self._asked.append(key)
        value = self._content.get(key, default)
        if value is default:
            return default
        # True is an int to Python, and not to anybody else.
        fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        if not fits:
            self.wrong_type(key, _NAMES[kind])
            return default
        return cast("T", value)

    def any(self, key: str) -> Any:  # noqa: ANN401  whatever stands there
        """An entry of any type, None if it is not there."""
        self._asked.append(key)
        return self._content.get(key)

    def wrong_type(self, key: str, expected: str) -> None:
        """Note that an entry is not what it should be."""
        self.problem(key, f"`{key}` of {self.name} is not {expected}")

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        return self.get(key, str, default)

    def optional_text(self, key: str) -> str | None:
        """A text, or None."""
        return self.text(key) or None

    def required_text(self, key: str, advice: str | None = None) -> str:
        """A text that must be there."""
        if key not in self._content:
            self._asked.append(key)
            self.problems.add(self.route, f"{self.name} has no `{key}`", advice=advice)
            return ""
        return self.text(key)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        return self.get(key, bool, default)

    def number(self, key: str) -> int | None:
        """A whole number, or None."""
        missing = object()
        value = self.get(key, int, cast("int", missing))
        return None if value is missing else value

    def texts(self, key: str) -> list[str]:
        """A text or a list of texts, as a list."""
        self._asked.append(key)
        value = self._content.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(t, str) for t in listed):
            self.wrong_type(key, "a text or a list of texts")
            return []
        return list(listed)

    def choice(self, key: str, choices: Sequence[T], default: T) -> T:
        """One of some words."""
        value = self.get(key, str, cast("str", default))
        if value not in choices:
            self.problem(
                key,
                f"`{key}` of {self.name} cannot be `{value}`",
                advice_for(value, [str(each) for each in choices]),
            )
            return default
        return cast("T", value)

    # -------------------------------------------------------------------- tables

    def table(self, key: str) -> Section:
        """A table, an empty one if it is not there."""
        content = self.get(key, dict, {})
        return Section(content, (*self.route, key), self.problems)

    def tables(self, key: str) -> list[Section]:
        """A list of tables."""
        found = self.any(key)
        if found is None:
            return []
        is_list = isinstance(found, list)
        if not is_list or not all(isinstance(each, dict) for each in found):
            self.problem(
                key,
                f"`{key}` is not a list of tables",
                f"write [[{key}]] on a line of its own, and its contents below",
            )
            return []
        return [
            Section(each, (*self.route, key, at), self.problems)
            for at, each in enumerate(found)
        ]

    def finish(self) -> None:
        """Note every entry that nobody asked for."""
        for key in self._content:
            if key not in self._asked:
                self.problem(
                    key,
                    f"{self.name} has an unknown entry `{key}`",
                    advice_for(key, sorted(set(self._asked))),
                )


def advice_for(word: str, known: Sequence[str]) -> str:
    """The word that was meant, or all there are."""
    near = get_close_matches(word, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"use one of {', '.join(f'`{each}`' for each in known)}"
