"""The predicates that a knowledge base knows: their arity and the names of columns.

A catalogue never changes; `extended` gives a new one, or an error before anything else
has happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from evermat.columns import column_names
from evermat.errors import EvermatError, Label
from evermat.lang.normalise import is_auxiliary
from evermat.lang.syntax import TRIPLE
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evermat.errors import Span
    from evermat.lang.syntax import Declaration

_SHOWN_NAMES = 8


class UnknownPredicateError(EvermatError, KeyError):
    """A predicate that neither rules nor data have mentioned."""

    code: ClassVar[str] = "EM251"

    def __init__(
        self, name: str, known: Iterable[str], *, span: Span | None = None
    ) -> None:
        self.name = name
        self.near = near_names(name, known)
        super().__init__(
            f"there is no predicate `{name}`",
            labels=() if span is None else (Label(span),),
            help=_name_help(self.near, known),
        )


class PredicateNameError(EvermatError, ValueError):
    """Something that cannot be the name of a predicate."""

    code: ClassVar[str] = "EM253"

    def __init__(self, name: object) -> None:
        super().__init__(
            f"{name!r} cannot be the name of a predicate",
            help="use a non-empty string that does not begin with `~`",
        )


class ArityClashError(EvermatError, ValueError):
    """A predicate used with two numbers of arguments."""

    code: ClassVar[str] = "EM250"

    def __init__(
        self,
        name: str,
        *,
        known: int,
        found: int,
        span: Span | None = None,
        where: str = "here",
    ) -> None:
        self.name = name
        self.known = known
        self.found = found
        super().__init__(
            f"`{name}` has {counted(known, 'argument')}, {where} it is given {found}",
            labels=() if span is None else (Label(span),),
            law="a predicate has the same number of arguments everywhere",
            help="correct the arguments, or use another predicate name",
        )


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Known names that look like a name, the best first."""
    visible = [other for other in known if not is_auxiliary(other)]
    folded = {other.casefold(): other for other in visible}
    matches = get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    return [folded[match] for match in matches]


def _name_help(near: list[str], known: Iterable[str]) -> str:
    if near:
        return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?"
    names = sorted(name for name in known if not is_auxiliary(name))
    if not names:
        return "the knowledge base has no predicates yet: insert facts or add rules"
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"known predicates: {shown}" + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A known predicate.

    Attributes:
        columns: the names of its columns, `c1`, `c2` and so on where none were given.
        types: the types that a declaration gives to its columns, or nothing.
        has_names: whether the names were given.
    """

    name: str
    arity: int
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()
    has_names: bool = False


class Catalogue:
    """Predicates by name."""

    def __init__(self, predicates: Mapping[str, Predicate] | None = None) -> None:
        self._predicates = dict(predicates or {})

    def __repr__(self) -> str:
        names = ", ".join(f"{name}/{arity}" for name, arity in self.arities.items())
        return f"<Catalogue {names or 'without predicates'}>"

    @cached_property
    def arities(self) -> Mapping[str, int]:
        """The arity of each predicate that users know of, in order of name."""
        return {each.name: each.arity for each in self}

    def __contains__(self, name: object) -> bool:
        return name in self._predicates

    def __iter__(self) -> Iterator[Predicate]:
        """The predicates that users know of, in order of name."""
        visible = (name for name in self._predicates if not is_auxiliary(name))
        return (self._predicates[name] for name in sorted(visible))

    @staticmethod
    def check_name(name: object) -> None:
        """Refuse what cannot be the name of a predicate."""
        if not isinstance(name, str) or not name or is_auxiliary(name):
            raise PredicateNameError(name)

    def require(self, name: object, *, span: Span | None = None) -> Predicate:
        """A predicate that must be there.

        Raises:
            UnknownPredicateError: with the names that come near.
        """
        if not isinstance(name, str):
            raise PredicateNameError(name)
        found = self._predicates.get(name)
        if found is None or is_auxiliary(name):
            raise UnknownPredicateError(name, self._predicates, span=span)
        return found

    def arity(self, name: str) -> int | None:
        """The arity of a predicate, if it is known."""
        found = self._predicates.get(name)
        return None if found is None else found.arity

    def check(self, name: str, arity: int, *, span: Span | None = None) -> None:
        """Refuse an arity that differs from the known one."""
        known = self.arity(name)
        if known is not None and known != arity:
            raise ArityClashError(name, known=known, found=arity, span=span)

    def get(self, name: str) -> Predicate | None:
        """A predicate, if it is known."""
        return self._predicates.get(name)

    def extended(self, mentioned: Iterable[Declaration]) -> Catalogue:
        """The catalogue with more predicates, and what is now declared about them.

        Raises:
            ArityClashError: a predicate is known, or given twice, with another arity.
        """
        grown: dict[str, Predicate] | None = None
        for each in mentioned:
            known = (grown or self._predicates).get(each.predicate)
            if known is not None:
                if known.arity != each.arity:
                    raise ArityClashError(
                        known.name, known=known.arity, found=each.arity, span=each.span
                    )
                if not each.column_names and not each.column_types:
                    continue
            if grown is None:
                grown = dict(self._predicates)
            grown[each.predicate] = _predicate(each)
        return self if grown is None else Catalogue(grown)


def _predicate(declared: Declaration) -> Predicate:
    name, arity = declared.predicate, declared.arity
    columns = declared.column_names or _default_columns(name, arity)
    has_names = bool(declared.column_names)
    return Predicate(name, arity, columns, declared.column_types, has_names)


def _default_columns(name: str, arity: int) -> tuple[str, ...]:
    triple = ("subject", "predicate", "object")
    if name == TRIPLE and arity == len(triple):
        return triple
    return tuple(column_names(arity))
