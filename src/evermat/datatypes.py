"""XML Schema datatypes as sets of values: membership and difference of literals.

Values of different primitive datatypes are different: the decimal `1.0` is the integer
`1`, but no double and no string. A literal is wrong only if this is certain: literals
of other datatypes are never rejected.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from evermat.values import BOUNDS, XSD, Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Hashable

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
    return _moment(lexical) if _FAMILIES[name] == TIME else lexical


def _moment(lexical: str) -> Hashable:
    """Return a moment; with a time zone, normalised to be the same in all zones."""
    try:
        moment = datetime.datetime.fromisoformat(lexical)
    except ValueError:
        return lexical
    if moment.tzinfo is None:
        return moment
    return "UTC", moment.astimezone(datetime.UTC)
