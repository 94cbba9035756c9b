"""Constants: the arguments of facts, in the form in which all modules exchange them.

A constant is a *kind* and a *text*. The text is canonical for its kind, so two
constants are equal if and only if their kinds and texts are. Python values are
converted to constants on input and back on output:

| kind      | Python value            | text                                        |
| --------- | ----------------------- | ------------------------------------------- |
| STRING    | `str`                   | the string (bare symbols are strings too)   |
| IRI       | `IRI`                   | the IRI, without angle brackets             |
| BLANK     | `BlankNode`             | the label, without `_:`                     |
| INTEGER   | `int`                   | decimal digits, any size                    |
| DECIMAL   | `decimal.Decimal`       | digits with a point, no exponent            |
| DOUBLE    | `float`                 | Python's `repr`                             |
| BOOLEAN   | `bool`                  | `true` or `false`                           |
| TYPED     | `TypedLiteral`          | datatype IRI, NUL, lexical form             |
| LANGUAGE  | `LangString`            | language tag in lower case, NUL, string     |

`1`, `1.0`, `true` and `"1"` are four different constants.

Terms of rdflib and pyoxigraph are converted as well. They are recognised by the names
of their classes, so neither library has to be imported.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from functools import lru_cache
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

XSD = "http://www.w3.org/2001/XMLSchema#"


class Kind(IntEnum):
    """The kinds of constants; the numbers are stored, so they never change."""

    STRING = 0
    IRI = 1
    BLANK = 2
    INTEGER = 3
    DECIMAL = 4
    DOUBLE = 5
    BOOLEAN = 6
    TYPED = 7
    LANGUAGE = 8

    __hash__ = int.__hash__  # Enum's own is written in Python, and slow


NUMERIC_KINDS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


@dataclass(frozen=True, slots=True, order=True)
class IRI:
    """An IRI, for example `IRI("http://example.org/a")`."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, order=True)
class BlankNode:
    """A blank node, identified by a label."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


LABEL_SIGNS = (
    r"\u00b7\u0300-\u036f\u037f-\u1fff\u200c\u200d\u203f\u2040\u2070-\u218f\u2c00-\u2fef"
    r"\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""The characters of N-Triples labels besides letters and digits, such as combining
marks, as part of a regular expression."""


@dataclass(frozen=True, slots=True, order=True)
class TypedLiteral:
    """A literal with a datatype that has no Python counterpart here.

    Dates and times that are not written as XML Schema prefers (`+00:00` for `Z`,
    `12:00:00.50`) are literals as well: as values of Python they would be the same as
    other literals.
    """

    lexical: str
    datatype: str


@dataclass(frozen=True, slots=True, order=True)
class LangString:
    """A string in a language, such as `"chat"@fr`.

    A base direction, as in `"shalom"@he--rtl`, is the end of the tag.
    """

    text: str
    language: str


Moment = datetime.date | datetime.time
"""A `datetime` is a date, too."""

Value = (
    str
    | int
    | float
    | bool
    | Decimal
    | Moment
    | IRI
    | BlankNode
    | TypedLiteral
    | LangString
)


class ValueConversionError(EvermatError, TypeError):
    """A Python value that cannot be converted to a constant."""

    code = "EM402"


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant: its kind and its canonical text."""

    kind: Kind
    text: str

    @property
    def value(self) -> Value:
        """The Python value of the constant."""
        return value_of(self.kind, self.text)

    def __str__(self) -> str:
        return term_text(self.kind, self.text)


def constant(value: object) -> Constant:
    """Return the constant for a Python value.

    >>> constant(42)
    Constant(kind=<Kind.INTEGER: 3>, text='42')
    """
    if isinstance(value, Constant):
        return value
    if not is_missing(value):
        convert = _converter(type(value))  # type: ignore[arg-type]  # types have hashes
        if convert is not None:
            return convert(value)
        known = _from_scalar(value)
        if known is not None:
            return known
    raise ValueConversionError(
        f"a value of type `{type(value).__name__}` cannot be stored: {short(value)}",
        help="use str, int, float, bool, Decimal, IRI, BlankNode, TypedLiteral, "
        "LangString, date, datetime, time",
    )


@lru_cache(maxsize=256)
def _converter(value_type: type) -> Callable[..., Constant] | None:
    """Return the function that converts values of a type, or of a base class."""
    for each in value_type.__mro__:
        library = each.__module__.partition(".")[0]
        # Terms of rdflib are `str` too, so their own classes come first.
        convert = _FROM_RDF.get((library, each.__name__)) or _FROM_PYTHON.get(each)
        if convert is not None:
            return convert
    return None


def is_missing(value: object) -> bool:
    """Return whether a Python value is missing: None, or pandas' and NumPy's markers.

    The latter types are recognised by name, so nothing has to be imported.
    """
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return type(value).__name__ == "datetime64" and value != value  # noqa: PLR0124


def _from_scalar(value: object) -> Constant | None:
    """Return the constant for a NumPy scalar, through its Python counterpart."""
    item = getattr(value, "item", None)
    if not callable(item) or getattr(value, "shape", None) != ():
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    found = item()
    if kind == "M" and isinstance(found, int):  # more precise than a `datetime`
        return literal(_moment_text(str(value)), XSD + "dateTime")
    if kind == "m" or type(found) is type(value):
        return None
    return constant(found)


def _moment_text(text: str) -> str:
    """Convert `isoformat` output to the form of XML Schema: `Z`, no trailing zeros.

    >>> _moment_text("2024-02-29T12:30:00.500000+00:00")
    '2024-02-29T12:30:00.5Z'
    """
    if "." in text:
        text = _FRACTION.sub(lambda found: found[1].rstrip("."), text)
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


_FRACTION = re.compile(r"(\.\d*?)0*(?!\d)")


def value_of(kind: Kind, text: str) -> Value:
    """Return the Python value for a kind and a canonical text."""
    return _TO_PYTHON[kind](text)


def literal(lexical: str, datatype: str) -> Constant:
    """Return the constant for an RDF literal with a datatype IRI.

    Datatypes with a Python counterpart are recognised and made canonical, including
    those of bounded integers: `"5"^^xsd:int` is the integer 5, because RDF considers
    them the same value. A lexical form that does not fit its datatype is stored as
    written, as a TYPED constant.
    """
    recognise = _RECOGNISED.get(datatype)
    if recognise is not None:
        try:
            return recognise(lexical)
        except (ValueError, InvalidOperation):
            pass
    return Constant(Kind.TYPED, f"{datatype}\0{lexical}")


def language_string(text: str, language: str) -> Constant:
    """Return the constant for a language-tagged string; tags do not depend on case."""
    return Constant(Kind.LANGUAGE, f"{language.lower()}\0{text}")


def term_text(kind: Kind, text: str) -> str:
    """Return the constant as a term of the language: `<iri>`, `"text"@en`, `42`, `_:b`.

    Doubles are written with an exponent, so they are read back as doubles.
    """
    match kind:
        case Kind.STRING:
            return quote(text)
        case Kind.IRI:
            return iri_text(text)
        case Kind.BLANK:
            return f"_:{text}"
        case Kind.TYPED:
            datatype, _, lexical = text.partition("\0")
            return f"{quote(lexical)}^^{iri_text(datatype)}"
        case Kind.LANGUAGE:
            language, _, lexical = text.partition("\0")
            return f"{quote(lexical)}@{language}"
        case Kind.DOUBLE:
            return _double_text(text)
        case _:
            return text


def iri_text(iri: str) -> str:
    """Return an IRI in angle brackets, with forbidden characters escaped."""
    escaped = re.sub(NOT_IN_IRI, lambda match: f"\\u{ord(match[0]):04X}", iri)
    return f"<{escaped}>"


NOT_IN_IRI = r'[\x00-\x20<>"{}|^`\\]'
"""A pattern for the characters that must be escaped in IRIs."""


def quote(text: str) -> str:
    """Return a string literal with the escapes of Turtle."""
    for char, escape in _ESCAPES:
        text = text.replace(char, escape)
    return f'"{text}"'


_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def _double_text(text: str) -> str:
    if text in {"nan", "inf", "-inf"}:
        name = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}[text]
        return f'"{name}"^^<{XSD}double>'
    return text if "e" in text else f"{text}e0"


def decimal_constant(value: Decimal) -> Constant:
    """Return the constant for a decimal number: at least one digit after the point."""
    if not value.is_finite():
        raise ValueConversionError(
            f"`{value}` is not a finite decimal", help="use a float for NaN or infinity"
        )
    text = f"{value:f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0") or "0"
    if whole in {"-0", "-"} and fraction == "0":
        whole = "0"
    return Constant(Kind.DECIMAL, f"{whole}.{fraction}")


def integer_constant(value: int) -> Constant:
    """Return the constant for an integer of any size."""
    try:
        return Constant(Kind.INTEGER, str(value))
    except ValueError:  # Python refuses long integers; decimals have no limit
        return Constant(Kind.INTEGER, f"{Decimal(value):f}")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # as above
        return int(Decimal(text))


def double_constant(value: float) -> Constant:
    """Return the constant for a double; `nan` equals itself here."""
    return Constant(Kind.DOUBLE, repr(float(value)))


def boolean_constant(*, value: bool) -> Constant:
    """Return the constant for a truth value."""
    return Constant(Kind.BOOLEAN, "true" if value else "false")


_XML_SPACE = " \t\r\n"
"""The white space allowed around a value; that of Unicode is not."""


def _recognise_integer(lexical: str) -> Constant:
    body = lexical.strip(_XML_SPACE)
    if not (body.isascii() and body.lstrip("+-").isdecimal()):
        raise ValueError(lexical)
    return integer_constant(_integer(body))


def _recognise_decimal(lexical: str) -> Constant:
    body = lexical.strip(_XML_SPACE)
    if not set(body) <= set("0123456789+-."):
        raise ValueError(lexical)
    return decimal_constant(Decimal(body))


def _recognise_double(lexical: str) -> Constant:
    body = lexical.strip(_XML_SPACE)
    special = {"INF": "inf", "+INF": "inf", "-INF": "-inf", "NaN": "nan"}.get(body)
    if special is None and not set(body) <= set("0123456789+-.eE"):
        raise ValueError(lexical)
    return double_constant(float(special or body))


def _recognise_boolean(lexical: str) -> Constant:
    body = lexical.strip(_XML_SPACE)
    value = {"true": True, "1": True, "false": False, "0": False}.get(body)
    if value is None:
        raise ValueError(lexical)
    return boolean_constant(value=value)


BOUNDS: dict[str, tuple[float, float]] = {
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
    "nonNegativeInteger": (0, math.inf),
    "positiveInteger": (1, math.inf),
    "nonPositiveInteger": (-math.inf, 0),
    "negativeInteger": (-math.inf, -1),
}
"""The datatypes of bounded integers, with the least and the greatest value."""


def _recognise_bounded(least: float, greatest: float) -> Callable[[str], Constant]:
    def recognise(lexical: str) -> Constant:
        known = _recognise_integer(lexical)
        if not least <= _integer(known.text) <= greatest:
            raise ValueError(lexical)
        return known

    return recognise


_RECOGNISED: dict[str, Callable[[str], Constant]] = {
    **{XSD + name: _recognise_bounded(*bounds) for name, bounds in BOUNDS.items()},
    XSD + "string": lambda lexical: Constant(Kind.STRING, lexical),
    XSD + "integer": _recognise_integer,
    XSD + "decimal": _recognise_decimal,
    XSD + "double": _recognise_double,
    XSD + "boolean": _recognise_boolean,
}


def _moment(value: Moment, datatype: str) -> Constant:
    return literal(_moment_text(value.isoformat()), XSD + datatype)


def _typed(text: str) -> Moment | TypedLiteral:
    datatype, _, lexical = text.partition("\0")
    read = _MOMENTS.get(datatype)
    if read is not None:
        try:
            moment = read(lexical)
        except ValueError:
            moment = None
        if moment is not None and _moment_text(moment.isoformat()) == lexical:
            return moment
    return TypedLiteral(lexical, datatype)


_MOMENTS: dict[str, Callable[[str], Moment]] = {
    XSD + "date": datetime.date.fromisoformat,
    XSD + "dateTime": datetime.datetime.fromisoformat,
    XSD + "time": datetime.time.fromisoformat,
}


def _lang(text: str) -> LangString:
    language, _, lexical = text.partition("\0")
    return LangString(lexical, language)


_TO_PYTHON: dict[Kind, Callable[[str], Value]] = {
    Kind.STRING: str,
    Kind.IRI: IRI,
    Kind.BLANK: BlankNode,
    Kind.INTEGER: _integer,
    Kind.DECIMAL: Decimal,
    Kind.DOUBLE: float,
    Kind.BOOLEAN: lambda text: text == "true",
    Kind.TYPED: _typed,
    Kind.LANGUAGE: _lang,
}


_FROM_PYTHON: dict[type, Callable[..., Constant]] = {
    # Members of enumerations are strings and numbers too, but print as names.
    str: lambda value: Constant(Kind.STRING, str.__str__(value)),
    bool: lambda value: boolean_constant(value=value),
    int: lambda value: integer_constant(int(value)),
    float: double_constant,
    Decimal: decimal_constant,
    IRI: lambda value: Constant(Kind.IRI, value.text),
    BlankNode: lambda value: Constant(Kind.BLANK, value.label),
    TypedLiteral: lambda value: literal(value.lexical, value.datatype),
    LangString: lambda value: language_string(value.text, value.language),
    datetime.datetime: lambda value: _moment(value, "dateTime"),
    datetime.date: lambda value: _moment(value, "date"),
    datetime.time: lambda value: _moment(value, "time"),
}


# ------------------------------------------------------ terms of other RDF libraries


def _rdflib_literal(value: Any) -> Constant:  # noqa: ANN401  rdflib is optional
    text = str.__str__(value)
    if value.language:
        return language_string(text, str.__str__(value.language))
    return literal(text, str.__str__(value.datatype or XSD + "string"))


def _pyoxigraph_literal(value: Any) -> Constant:  # noqa: ANN401  recognised by its name
    if value.language is None:
        return literal(value.value, value.datatype.value)
    direction = getattr(value, "direction", None)
    ending = "" if direction is None else f"--{direction.value}"
    return language_string(value.value, value.language + ending)


def _no_term(value: object) -> Constant:
    name = type(value).__name__
    raise ValueConversionError(
        f"a value of type `{name}` of rdflib cannot be stored: {short(value)}",
        reason="a fact has IRIs, blank nodes and literals",
        help="write URIRef(…) for an IRI, str(…) for a string",
    )


_FROM_RDF: dict[tuple[str, str], Callable[..., Constant]] = {
    ("rdflib", "URIRef"): lambda value: Constant(Kind.IRI, str.__str__(value)),
    ("rdflib", "BNode"): lambda value: Constant(Kind.BLANK, str.__str__(value)),
    ("rdflib", "Literal"): _rdflib_literal,
    ("rdflib", "Identifier"): _no_term,  # variables, which are `str` as well
    ("rdflib", "Namespace"): _no_term,
    ("pyoxigraph", "NamedNode"): lambda value: Constant(Kind.IRI, value.value),
    ("pyoxigraph", "BlankNode"): lambda value: Constant(Kind.BLANK, value.value),
    ("pyoxigraph", "Literal"): _pyoxigraph_literal,
}
"""Converters, by the library and the name of a class."""


# ---------------------------------------------------------------------------- datatypes

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"

DECIMAL, STRING, TAGGED, TIME = "decimal", "string", "langString", "dateTime"
"""Names of families: disjoint sets of values."""

_NAME = r"[^\W\d][\w.\-]*"
_TEXTS = {
    "string": r"[\s\S]*",
    "normalizedString": r"[^\t\n\r]*",
    "token": r"|[^\s]+( [^\s]+)*",
    "language": r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*",
    "NMTOKEN": r"[\w.\-:]+",
    "Name": r"[^\W\d:]?[\w.\-:]*|:[\w.\-:]*",
    "NCName": _NAME,
}
"""Datatypes of strings, with tests for their values."""

_DATE = r"-?([1-9]\d{3,}|0\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK = r"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?|24:00:00(\.0+)?)"
_ZONE = r"(Z|[+\-](0\d|1[0-3]):[0-5]\d|[+\-]14:00)"
_LEXICAL = {
    "float": r"[+\-]?(\d+(\.\d*)?|\.\d+)([eE][+\-]?\d+)?|[+\-]?INF|NaN",
    "hexBinary": r"([0-9a-fA-F]{2})*",
    "base64Binary": r"(\s*[A-Za-z0-9+/]\s*)*(=\s*){0,2}",
    "anyURI": r"[\s\S]*",
    "dateTime": rf"{_DATE}T{_CLOCK}{_ZONE}?",
    "dateTimeStamp": rf"{_DATE}T{_CLOCK}{_ZONE}",
    "date": rf"{_DATE}{_ZONE}?",
    "time": rf"{_CLOCK}{_ZONE}?",
    "gYear": rf"-?([1-9]\d{{3,}}|0\d{{3}}){_ZONE}?",
    "gYearMonth": rf"-?([1-9]\d{{3,}}|0\d{{3}})-(0[1-9]|1[0-2]){_ZONE}?",
    "gMonthDay": rf"--(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]){_ZONE}?",
    "gMonth": rf"--(0[1-9]|1[0-2]){_ZONE}?",
    "gDay": rf"---(0[1-9]|[12]\d|3[01]){_ZONE}?",
    "duration": (
        r"-?P(?=.)(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
    ),
}
"""Datatypes of literals that are stored as written, with their lexical forms."""

_FORMS = {name: re.compile(form) for name, form in {**_TEXTS, **_LEXICAL}.items()}

_FAMILIES = {
    **dict.fromkeys(BOUNDS, DECIMAL),
    **dict.fromkeys(_TEXTS, STRING),
    **{name: name for name in _LEXICAL},
    "dateTimeStamp": TIME,
    "integer": DECIMAL,
    "decimal": DECIMAL,
    "double": "double",
    "boolean": "boolean",
}
_OF_KIND = {
    Kind.STRING: STRING,
    Kind.INTEGER: DECIMAL,
    Kind.DECIMAL: DECIMAL,
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.LANGUAGE: TAGGED,
}
_UNIONS = {
    _RDFS + "Literal": None,
    _OWL + "real": {DECIMAL},
    _OWL + "rational": {DECIMAL},
    _RDF + "PlainLiteral": {STRING, TAGGED},
    _RDF + "langString": {TAGGED},
    _RDF + "dirLangString": {TAGGED},
}
"""Other datatypes, as unions of families; None for all."""


def is_known(datatype: str) -> bool:
    """Return whether the values of a datatype are known."""
    return datatype in _UNIONS or datatype.removeprefix(XSD) in _FAMILIES


def is_literal(value: Constant) -> bool:
    """Return whether a constant is a literal, and not an IRI or a blank node."""
    return value.kind not in {Kind.IRI, Kind.BLANK}


def is_outside(value: Constant, datatype: str) -> bool:
    """Return whether a literal is certainly not a value of a datatype.

    >>> is_outside(Constant(Kind.INTEGER, "300"), XSD + "byte")
    True
    """
    if not is_literal(value) or not is_known(datatype):
        return False
    if is_ill_typed(value):
        return True
    family = _family(value)
    if family is None:
        return False  # an unknown datatype
    if datatype in _UNIONS:
        families = _UNIONS[datatype]
        return families is not None and family not in families
    name = datatype.removeprefix(XSD)
    if family != _FAMILIES[name]:
        return True
    if family == DECIMAL:
        return _is_outside_numbers(value, name)
    form = _FORMS.get(name)
    return form is not None and form.fullmatch(_lexical(value)) is None


def is_ill_typed(value: Constant) -> bool:
    """Return whether the lexical form of a literal does not fit its datatype."""
    if value.kind is not Kind.TYPED:
        return False  # others were recognised when they were read
    datatype, _, lexical = value.text.partition("\0")
    name = datatype.removeprefix(XSD)
    if name not in _FAMILIES or datatype == name:
        return False
    form = _LEXICAL.get(name) or _TEXTS.get(name)
    if form is None:
        return True
    return _FORMS[name].fullmatch(_collapsed(lexical, name)) is None


def are_different(left: Constant, right: Constant) -> bool:
    """Return whether two literals certainly denote different values.

    >>> are_different(Constant(Kind.INTEGER, "1"), Constant(Kind.DECIMAL, "1.0"))
    False
    """
    if not is_literal(left) or not is_literal(right) or left == right:
        return False
    families = _family(left), _family(right)
    if None in families:
        return False
    return families[0] != families[1] or _value(left) != _value(right)


def _family(value: Constant) -> str | None:
    if value.kind is not Kind.TYPED:
        return _OF_KIND[value.kind]
    datatype = value.text.partition("\0")[0]
    name = datatype.removeprefix(XSD)
    if datatype == name or is_ill_typed(value):
        return None
    return _FAMILIES.get(name)


def _is_outside_numbers(value: Constant, name: str) -> bool:
    if name == "decimal":
        return False
    number = Decimal(value.text)
    if number != number.to_integral_value():
        return True
    if name == "integer":
        return False
    least, greatest = BOUNDS[name]
    return not least <= number <= greatest


def _lexical(value: Constant) -> str:
    return value.text.rpartition("\0")[2]


def _collapsed(lexical: str, name: str) -> str:
    """Return the form without white space that is insignificant in the datatype."""
    return lexical if name in {"string", "normalizedString"} else lexical.strip()


def _value(value: Constant) -> Hashable:
    """Return the value of a literal, unique within its family."""
    if value.kind in {Kind.INTEGER, Kind.DECIMAL}:
        return Decimal(value.text)
    if value.kind is not Kind.TYPED:
        return value.text
    name = value.text.partition("\0")[0].removeprefix(XSD)
    lexical = _collapsed(_lexical(value), name)
    if name == "hexBinary":
        return lexical.lower()
    if name == "base64Binary":
        return "".join(lexical.split())
    if name == "float":
        return repr(float(lexical.replace("INF", "inf")))  # distinguishes 0 from -0
    return _moment_of(lexical) if _FAMILIES[name] == TIME else lexical


def _moment_of(lexical: str) -> Hashable:
    """Return a moment; with a time zone, normalised to be the same in all zones."""
    try:
        moment = datetime.datetime.fromisoformat(lexical)
    except ValueError:
        return lexical
    if moment.tzinfo is None:
        return moment
    return "UTC", moment.astimezone(datetime.UTC)
