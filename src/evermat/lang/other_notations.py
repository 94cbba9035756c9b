"""What people write who know another language, and what to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import Label, ParseError, Span

if TYPE_CHECKING:
    from evermat.errors import Source

SIGNS = {
    "!": "negation is written `not`, and inequality `!=`",
    ";": "separate body atoms with a comma; write one rule for each alternative",
    "|": "write one rule for each alternative",
    "&": "separate body atoms with a comma",
    "?": "a variable needs a name, such as `?x`; an anonymous one is written `_`",
    "$": "variables are written `?x`",
}
"""Single signs of other languages."""

_EQUAL = "equality is written `=`"
_UNEQUAL = "inequality is written `!=`"
_NOT = "negation is written `not`"
_AND = "separate body atoms with a comma"
_OR = "write one rule for each alternative"
_IMPLIES = "the sign between head and body is `:-`"

OPERATORS = {
    "==": _EQUAL,
    "===": _EQUAL,
    "=:=": _EQUAL,
    ":=": "a variable gets its value with `=`, as in `?z = ?x + 1`",
    "<>": _UNEQUAL,
    "!==": _UNEQUAL,
    "=!": _UNEQUAL,
    "=!=": _UNEQUAL,
    "\\=": _UNEQUAL,
    "\\==": _UNEQUAL,
    "=\\=": _UNEQUAL,
    "≠": _UNEQUAL,
    "=<": "less or equal is written `<=`",
    "≤": "less or equal is written `<=`",
    "=>": "greater or equal is written `>=`",
    "≥": "greater or equal is written `>=`",
    "=~": 'use `regex(?text, "pattern")`',
    "\\+": _NOT,
    "¬": _NOT,
    "&&": _AND,
    "/\\": _AND,
    "||": _OR,
    "\\/": _OR,
    "**": "there is no power; multiply",
    "?-": "a query is a body by itself: leave `?-` out",
}
"""Operators of other languages, of one or several signs."""

WORDS = {
    "in": "write one rule for each value; or make the values facts, as in "
    "`wanted(1) . wanted(2) .`, and add `wanted(?x)` to the body",
    "is": "a variable gets its value with `=`, as in `?z = ?x + 1`",
    "and": _AND,
    "or": _OR,
    "xor": _OR,
    "mod": "the remainder is written `%`",
    "div": "a quotient is written `/`",
    "like": "use `contains`, `starts_with`, `ends_with` or `regex`",
    "between": "write two comparisons, as in `?x >= 1, ?x <= 9`",
}
"""Words that stand between two expressions elsewhere."""

ARROWS = dict.fromkeys(("<", "<=", "-", "=", ":", "←", "⇐", "if", "where"), _IMPLIES)
"""With what other languages begin to separate a head from its body."""

FUNCTIONS = {
    "cat": "concat",
    "float": "double",
    "integer": "int",
    "lang": "language",
    "lcase": "lower",
    "len": "length",
    "match": "regex",
    "string": "str",
    "strends": "ends_with",
    "strlen": "length",
    "strstarts": "starts_with",
    "substring": "substr",
    "to_lower": "lower",
    "to_number": "int",
    "to_string": "str",
    "to_upper": "upper",
    "ucase": "upper",
}
"""What functions of other languages are called here."""

AGGREGATES = frozenset(
    {"avg", "average", "collect", "count", "group_concat", "mean", "median", "sample"}
    | {"sum", "total"}
)
"""Functions of many rows in other languages; rules have none."""

_COMMENTS = r"(?:\s|\#[^\n]*\n)*"
_SPARQL = re.compile(
    rf"{_COMMENTS}(?:(?:PREFIX\s+[\w\-.]*:|BASE)\s*<[^>]*>{_COMMENTS})*"
    r"(?P<word>SELECT|ASK|CONSTRUCT|DESCRIBE|INSERT|DELETE|WITH)"
    r"\s*(?:[{*?$<]|\(\s*\w+\s*\(|(?:DISTINCT|REDUCED|WHERE|DATA|FROM)\b)",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"(?:\s|--[^\n]*\n)*(?P<word>SELECT\s[\w\s.,*\"]+?\sFROM|INSERT\s+INTO|CREATE\s+TABLE)"
    r"\s+\w",
    re.IGNORECASE,
)


def query_of_another_language(source: Source) -> ParseError | None:
    """The mistake of a text that is a query of SPARQL or SQL, if it is one."""
    for language, pattern in (("SQL", _SQL), ("SPARQL", _SPARQL)):
        found = pattern.match(source.text)
        if found is not None:
            place = Span(source, found.start("word"), found.end("word"))
            return ParseError(
                f"the text is a query in {language}, which is not understood here",
                labels=(Label(place),),
                help="a query is a conjunction of atoms, such as "
                "`[?x, a, :Person], [?x, :age, ?n], ?n > 17` or `edge(?x, ?y)`; "
                "a rule is `adult(?x) :- [?x, :age, ?n], ?n > 17 .`",
            )
    return None
