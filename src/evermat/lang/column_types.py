"""The types that `@declare` gives to columns."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.functions import ANY, NUMBER, TEXT, Type
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMN_TYPES: Mapping[str, Type] = MappingProxyType(
    {
        "any": ANY,
        "string": frozenset({Kind.STRING}),
        "integer": frozenset({Kind.INTEGER}),
        "decimal": frozenset({Kind.DECIMAL}),
        "double": frozenset({Kind.DOUBLE}),
        "number": NUMBER,
        "boolean": frozenset({Kind.BOOLEAN}),
        "iri": frozenset({Kind.IRI}),
        "blank": frozenset({Kind.BLANK}),
        "resource": frozenset({Kind.IRI, Kind.BLANK}),
        "literal": ANY - {Kind.IRI, Kind.BLANK},
    }
)
"""The kinds of constants that each type allows."""

TYPE_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "int": "integer",
        "str": "string",
        "symbol": "string",
        "float": "double",
        "bool": "boolean",
    }
)
"""Other words for the same types."""


def type_name(kinds: Type) -> str:
    """A name for a set of kinds: that of a declared type, or of its kinds.

    >>> type_name(frozenset({Kind.INTEGER}))
    'integer'
    """
    for name, allowed in (*COLUMN_TYPES.items(), ("text", TEXT)):
        if kinds == allowed:
            return name
    names = sorted(_KIND_NAMES[kind] for kind in kinds)
    return " or ".join(names)


_KIND_NAMES = {
    Kind.STRING: "string",
    Kind.IRI: "iri",
    Kind.BLANK: "blank",
    Kind.INTEGER: "integer",
    Kind.DECIMAL: "decimal",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.TYPED: "typed literal",
    Kind.LANGUAGE: "language string",
}
