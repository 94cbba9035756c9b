"""The predicates of a knowledge base: their arities and the names of columns.

A catalogue is immutable; `extended` returns a new one, or raises an error before
anything has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from evermat.columns import (
    SwappedColumnsWarning,
    column_names,
    order_of,
    say_nothing,
    warn,
)
from evermat.errors import EvermatError, Label
from evermat.errors.wording import counted
from evermat.lang.syntax import (
    ANONYMOUS,
    AUXILIARY_MARK,
    TRIPLE,
    Declaration,
    Variable,
    is_auxiliary,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evermat.errors import Span
    from evermat.lang.syntax import Atom, Rule


# ---------------------------------- names of columns, taken from the variables of rules


def names_in_atoms(rules: Iterable[Rule], predicate: str) -> set[tuple[str, ...]]:
    """Return the variables of each atom of a predicate that has variables only.

    >>> from evermat.lang.parser import parse_rules
    >>> rules = parse_rules("adult(?n) :- person(?n, ?age), not person(?n, 7) .")
    >>> names_in_atoms(rules, "person")
    {('n', 'age')}
    """
    found = set()
    for rule in rules:
        for atom in rule.atoms():
            if atom.predicate == predicate:
                names = variable_names(atom)
                if len(set(names)) == len(atom.arguments):
                    found.add(names)
    return found


def variable_names(atom: Atom) -> tuple[str, ...]:
    """Return the names of the variables among the arguments of an atom, in order."""
    return tuple(
        each.name
        for each in atom.arguments
        if isinstance(each, Variable) and each.name != ANONYMOUS
    )


_SHOWN_NAMES = 8


class UnknownPredicateError(EvermatError, KeyError):
    """A predicate that neither rules nor data mention."""

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
    """A value that cannot be the name of a predicate."""

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
            reason="a predicate has the same number of arguments everywhere",
            help="correct the arguments, or use another predicate name",
        )


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return known names that are similar to a name, the best first."""
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
        columns: the names of its columns: declared ones, or the variables of a rule
            that derives it, or else `c1`, `c2` and so on.
        types: the declared types of its columns; empty if there are none.
        has_names: whether the names were declared.
    """

    name: str
    arity: int
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()
    has_names: bool = False


class Catalogue:
    """Predicates by name.

    Attributes:
        column_names: the first column names in the data of predicates without declared
            ones. They are not stored with a state.
    """

    def __init__(
        self,
        predicates: Mapping[str, Predicate] | None = None,
        column_names: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._predicates = dict(predicates or {})
        self.column_names = dict(column_names or {})

    def __repr__(self) -> str:
        names = ", ".join(f"{name}/{arity}" for name, arity in self.arities.items())
        return f"<Catalogue {names or 'without predicates'}>"

    @cached_property
    def arities(self) -> Mapping[str, int]:
        """The arity of each predicate that is visible to users, in order of name."""
        return {each.name: each.arity for each in self}

    def __contains__(self, name: object) -> bool:
        return name in self._predicates

    def __iter__(self) -> Iterator[Predicate]:
        """Yield the predicates that are visible to users, in order of name."""
        visible = (name for name in self._predicates if not is_auxiliary(name))
        return (self._predicates[name] for name in sorted(visible))

    @staticmethod
    def check_name(name: object) -> None:
        """Refuse values that cannot be the name of a predicate."""
        if not isinstance(name, str) or not name or is_auxiliary(name):
            raise PredicateNameError(name)

    def require(self, name: object, *, span: Span | None = None) -> Predicate:
        """Return a predicate that must be known.

        Raises:
            UnknownPredicateError: with similar names.
        """
        if not isinstance(name, str):
            raise PredicateNameError(name)
        found = self._predicates.get(name)
        if found is None or name[0] == AUXILIARY_MARK:
            raise UnknownPredicateError(name, self._predicates, span=span)
        return found

    def arity(self, name: str) -> int | None:
        """Return the arity of a predicate, if it is known."""
        found = self._predicates.get(name)
        return None if found is None else found.arity

    def check(self, name: str, arity: int, *, span: Span | None = None) -> None:
        """Refuse an arity that differs from the known one."""
        known = self.arity(name)
        if known is not None and known != arity:
            raise ArityClashError(name, known=known, found=arity, span=span)

    def get(self, name: str) -> Predicate | None:
        """Return a predicate, if it is known."""
        return self._predicates.get(name)

    def extended(self, mentioned: Iterable[Declaration]) -> Catalogue:
        """Return the catalogue with more predicates and new declarations.

        Raises:
            ArityClashError: a predicate is known, or declared twice, with another
                arity.
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
        return self if grown is None else Catalogue(grown, self.column_names)

    def declarations(self) -> Iterator[Declaration]:
        """Yield the known properties of each predicate, as declarations."""
        for each in self:
            names = each.columns if each.has_names else ()
            yield Declaration(each.name, each.arity, each.types, names)

    def named_after(self, rules: Iterable[Rule]) -> Catalogue:
        """Return the catalogue with columns named after the variables in rule heads.

        The first rule whose head has only distinct variables decides; declared names
        are kept.
        """
        heads: dict[str, tuple[str, ...]] = {}
        for rule in rules:
            for head in rule.heads:
                if head.predicate not in heads:
                    names = variable_names(head)
                    if len(set(names)) == head.arity:
                        heads[head.predicate] = names
        named = {
            name: replace(each, columns=_columns_of(each, heads.get(name)))
            for name, each in self._predicates.items()
        }
        return Catalogue(named, self.column_names)

    def with_column_names(self, names: Mapping[str, tuple[str, ...]]) -> Catalogue:
        """Return the catalogue with the names of columns in the data."""
        if names == self.column_names:
            return self
        return Catalogue(self._predicates, names)


class ColumnNames:
    """Names of undeclared columns, recorded to detect swapped columns.

    Attributes:
        first: the names in the first data of each predicate.
    """

    def __init__(
        self,
        known: Mapping[str, tuple[str, ...]],
        rules: Callable[[], Iterable[Rule]],
    ) -> None:
        """Begin with known names.

        Args:
            known: the names in earlier data.
            rules: returns the rules, whose variables are names of columns as well.
        """
        self.first = dict(known)
        self._rules = rules

    def is_familiar(self, predicate: str, names: Sequence[str]) -> bool:
        """Return whether names need neither a warning nor to be recorded."""
        order = tuple(names)
        return self.first.get(predicate) == order or say_nothing(order)

    def note(self, predicate: str, names: Sequence[str]) -> None:
        """Record the names of the columns of some data.

        Warns:
            SwappedColumnsWarning: other data, or the rules, have the same names in
                another order.
        """
        if self.is_familiar(predicate, names):
            return
        order = tuple(names)
        known = self.first.setdefault(predicate, order)
        if _is_swapped(order, known):
            where = "other data for it has"
            warn(SwappedColumnsWarning(predicate, order, known, where))
        elif known is order:
            self._compare_with_rules(predicate, order)

    def in_rules(self, predicate: str) -> set[tuple[str, ...]]:
        """Return the variables that rules use for the arguments of a predicate."""
        return names_in_atoms(self._rules(), predicate)

    def _compare_with_rules(self, predicate: str, order: tuple[str, ...]) -> None:
        written = self.in_rules(predicate)
        swapped = sorted(other for other in written if _is_swapped(order, other))
        alike = (order_of(order, other) for other in written)
        if swapped and list(range(len(order))) not in alike:
            where = "rules have the variables"
            warn(SwappedColumnsWarning(predicate, order, swapped[0], where))


def _is_swapped(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    places = order_of(one, other)
    return places is not None and places != list(range(len(one)))


def _predicate(declared: Declaration) -> Predicate:
    name, arity = declared.predicate, declared.arity
    columns = declared.column_names or _default_columns(name, arity)
    has_names = bool(declared.column_names)
    return Predicate(name, arity, columns, declared.column_types, has_names)


def _columns_of(
    predicate: Predicate, variables: tuple[str, ...] | None
) -> tuple[str, ...]:
    if predicate.has_names:
        return predicate.columns
    default = _default_columns(predicate.name, predicate.arity)
    return default if predicate.name == TRIPLE else variables or default


def _default_columns(name: str, arity: int) -> tuple[str, ...]:
    triple = ("subject", "predicate", "object")
    if name == TRIPLE and arity == len(triple):
        return triple
    return tuple(column_names(arity))
