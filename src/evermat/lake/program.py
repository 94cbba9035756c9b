"""The rules, the predicates and the settings that a state was made with, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evermat.lake.errors import StateError
from evermat.lang.catalogue import Catalogue, Predicate
from evermat.lang.parser import parse_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.lang.syntax import Rule

FORMAT = 1
"""Goes up when states are written that older versions cannot read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the facts of a state are kept, which cannot change from one day to the next.

    Attributes:
        claimed: the rules whose instances are not counted, because modules take care
            of them; in canonical form, since rules can be spelt in several ways.
        rewrites: whether facts hold constants that stand for all that are equal; with
            `equality="auto"` from the first equality on.
    """

    counters: bool = True
    modules: bool = True
    equality: str = "auto"
    claimed: tuple[str, ...] = ()
    rewrites: bool = False


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """What is known about the facts of a version."""

    rules: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = Settings()

    def parsed_rules(self) -> tuple[Rule, ...]:
        """The rules, as they were given.

        They have no places: nobody has a file in which they stand one after the other.
        """
        rules = parse_rules("\n".join(self.rules))
        return tuple(replace(rule, span=None) for rule in rules)

    def catalogue(self) -> Catalogue:
        """The predicates."""
        return Catalogue({each.name: each for each in self.predicates})

    def arities(self) -> dict[str, int]:
        """How many arguments each predicate has."""
        return {each.name: each.arity for each in self.predicates}

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def read_program(text: str, place: str) -> StoredProgram:
    """A program from its JSON."""
    doing = f"read the program of the state at `{place}`"
    try:
        data: dict[str, Any] = json.loads(text)
        found = data["format"]
        if found != FORMAT:
            raise StateError(
                doing,
                f"it has format {found}, and this is evermat for format {FORMAT}",
                help="use the version of evermat that wrote it, or a newer one",
            )
        return StoredProgram(
            rules=tuple(data["rules"]),
            predicates=tuple(
                Predicate(
                    each["name"],
                    each["arity"],
                    tuple(each["columns"]),
                    tuple(each["types"]),
                    each["has_names"],
                )
                for each in data["predicates"]
            ),
            prefixes=data["prefixes"],
            settings=Settings(
                **{**data["settings"], "claimed": tuple(data["settings"]["claimed"])}
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(doing, f"it is damaged ({error})") from error
