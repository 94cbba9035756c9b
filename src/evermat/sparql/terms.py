"""Terms of rdflib and our constants, one as the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rdflib.term import BNode, Literal, URIRef

from evermat.values import XSD, Constant, Kind, constant

if TYPE_CHECKING:
    from collections.abc import Callable

RdfTerm: TypeAlias = URIRef | BNode | Literal

Part: TypeAlias = Any
"""A node of the algebra as rdflib has it, or an expression; they have no types."""


def constant_of(term: RdfTerm) -> Constant:
    """Our constant for a term."""
    return constant(term)


def term_of(value: Constant) -> RdfTerm:
    """The term for a constant."""
    return _TERMS[value.kind](value.text)


def _double(text: str) -> Literal:
    name = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(text, text)
    return Literal(name, datatype=URIRef(XSD + "double"))


def _typed(text: str) -> Literal:
    datatype, _, lexical = text.partition("\0")
    return Literal(lexical, datatype=URIRef(datatype))


def _language(text: str) -> Literal:
    language, _, lexical = text.partition("\0")
    return Literal(lexical, lang=language.partition("--")[0])


def _of_type(name: str) -> Callable[[str], Literal]:
    datatype = URIRef(XSD + name)
    return lambda text: Literal(text, datatype=datatype)


_TERMS: dict[Kind, Callable[[str], RdfTerm]] = {
    Kind.STRING: Literal,
    Kind.IRI: URIRef,
    Kind.BLANK: BNode,
    Kind.INTEGER: _of_type("integer"),
    Kind.DECIMAL: _of_type("decimal"),
    Kind.DOUBLE: _double,
    Kind.BOOLEAN: _of_type("boolean"),
    Kind.TYPED: _typed,
    Kind.LANGUAGE: _language,
}
