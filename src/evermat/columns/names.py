"""Names of columns: those of data, and those that a predicate declares.

Data with named columns is matched to declared columns by name, in any order. Generic
names (`c1`, `0`, `column_1`, `x`), which libraries and query results use, leave the
columns in order.
"""

from __future__ import annotations

import re
import sys
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SAYS_NOTHING = re.compile(
    r"_?[a-z]?\d*|_?(col|column|field|arg|argument|var|variable|attr|unnamed:)[ _]?\d+",
    re.IGNORECASE,
)


class ColumnNamesError(EvermatError, ValueError):
    """The names of columns differ from those that their predicate declares.

    Attributes:
        found: the names of the data.
        declared: the names of the declaration.
    """

    code = "EM704"

    def __init__(
        self, found: Sequence[str], declared: Sequence[str], *, name: str = ""
    ) -> None:
        self.found = tuple(found)
        self.declared = tuple(declared)
        of = f" for `{name}`" if name else ""
        super().__init__(
            f"the data{of} has the columns {quoted_names(found)}, "
            f"and those declared are {quoted_names(declared)}",
            reason="data with named columns goes to declared columns by name",
            help="choose and rename the columns of the data, or give tuples, which go "
            "by position",
        )


class SwappedColumnsWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Named columns of an undeclared predicate, in another order than elsewhere."""

    code = "EM906"

    def __init__(
        self, name: str, found: Sequence[str], other: Sequence[str], where: str
    ) -> None:
        columns = ", ".join(f"{each}: any" for each in other)
        super().__init__(
            f"the data for `{name}` has the columns {quoted_names(found)}, "
            f"and {where} {quoted_names(other)}",
            reason=f"columns go by position, because none are declared for `{name}`",
            help=f"for columns to go by name, write @declare {name}({columns}) .",
        )


def quoted_names(names: Iterable[str]) -> str:
    """Quote names for a message."""
    return ", ".join(f"`{name}`" for name in names) or "none"


def order_of(found: Sequence[str], wanted: Sequence[str]) -> list[int] | None:
    """Return the positions of the wanted names among those found; None if they differ.

    Case and surrounding white space are ignored if the result is unambiguous.

    >>> order_of(["Age", "Name"], ["name", "age"])
    [1, 0]
    """
    if len(found) != len(wanted):
        return None
    for form in (str, folded):
        places = {form(name): at for at, name in enumerate(found)}
        keys = list(map(form, wanted))
        if len(places) == len(set(keys)) == len(found) and places.keys() == set(keys):
            return [places[key] for key in keys]
    return None


def folded(name: str) -> str:
    """Return a name without case and surrounding white space."""
    return name.strip().casefold()


@lru_cache(maxsize=1024)
def say_nothing(names: tuple[str, ...]) -> bool:
    """Return whether names are generic ones, made up where there are none.

    >>> say_nothing(("c1", "column_2", "x")), say_nothing(("x", "age"))
    (True, False)
    """
    return all(map(_SAYS_NOTHING.fullmatch, names))


def declared_places(
    found: Sequence[str], declared: Sequence[str], *, name: str = ""
) -> Sequence[int]:
    """Return for each declared column its position in data with named columns.

    Args:
        found: the names of the data.
        declared: the names of the declaration.
        name: the name of the predicate.

    Raises:
        ColumnNamesError: the names differ, and are not generic.
    """
    if not say_nothing(tuple(found)):
        places = order_of(found, declared)
        if places is None:
            raise ColumnNamesError(found, declared, name=name)
        return places
    return answer_places(found, declared, name=name)


def answer_places(
    found: Sequence[str], declared: Sequence[str], *, name: str = ""
) -> Sequence[int]:
    """Return the same for answers, whose columns are named after query variables.

    Any names are allowed, except those of declared columns at other positions. Their
    number is checked elsewhere.
    """
    places = order_of(found, declared)
    if places is not None:
        return places
    pairs = zip(map(folded, found), map(folded, declared), strict=False)
    elsewhere = set(map(folded, declared))
    if any(one != other and one in elsewhere for one, other in pairs):
        raise ColumnNamesError(found, declared, name=name)
    return range(len(found))


def warn(warning: Warning) -> None:
    """Issue a warning for the nearest line outside of Evermat."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001  `skip_file_prefixes` needs 3.12
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in {"evermat", "contextlib"}
