"""What a configuration says of rows: columns with their rules, facts with arguments."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from evermat.errors import EvermatError
from evermat.lang.syntax import TRIPLE
from evermat.lang.terms import is_absolute
from evermat.pipeline.config import Argument, Bound, Column, FactMap
from evermat.pipeline.conversions import TYPES, in_utc
from evermat.pipeline.mapping import HOLE
from evermat.pipeline.sections import Section, WrittenFloat
from evermat.values import NOT_IN_IRI, constant

if TYPE_CHECKING:
    from collections.abc import Sequence

_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*(--(ltr|rtl))?")
_ARGUMENT_KINDS = ("column", "iri", "text", "value")


def columns_of(section: Section) -> list[Column]:
    """The columns that a source declares."""
    found = []
    for name in section.keys:
        value = section.any(name)
        if isinstance(value, str):
            value = {"type": value}
        if not isinstance(value, dict):
            section.wrong_type(name, "a type or a table")
            continue
        entry = Section(value, (*section.route, name), section.problems)
        found.append(_column(name, entry))
        entry.finish()
    section.finish()
    return found


def _column(name: str, entry: Section) -> Column:
    pattern = entry.optional_text("pattern")
    if pattern is not None:
        try:
            # Values are matched by Arrow, which knows less than Python does.
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            entry.problem("pattern", f"not a regular expression: {error}")
            pattern = None
    kind = entry.choice("type", sorted(TYPES), "string") if "type" in entry else None
    return Column(
        name=name,
        type=kind,
        required=entry.flag("required", default=True),
        pattern=pattern,
        minimum=_bound(entry, "min", kind),
        maximum=_bound(entry, "max", kind),
        one_of=tuple(map(str, entry.get("one_of", list, []))),
    )


_BOUNDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("integer", "decimal", "double"), ((int, float), "a number")),
    **dict.fromkeys(("string", "iri"), ((str,), "a text")),
    **dict.fromkeys(("date", "datetime"), ((datetime.date,), "a date")),
}
"""For types of columns, what a bound is; moments are dates to Python."""


def _bound(entry: Section, key: str, kind: str | None) -> Bound | None:
    value = entry.any(key)
    anything = ((int, float, str, datetime.date), "a number, a text or a date")
    fitting, called = _BOUNDS.get(kind or "", anything)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, fitting):
        entry.wrong_type(key, called)
        return None
    match value:
        case datetime.datetime():
            return in_utc(value).isoformat()
        case datetime.date():
            return value.isoformat()
        case WrittenFloat():
            return value.exact
        case _:
            return cast("Bound", value)


def facts_of(section: Section, *, is_rdf: bool) -> tuple[FactMap, ...]:
    """What rows of a source become."""
    predicate = section.text("predicate", TRIPLE if is_rdf else "")
    arguments = [] if is_rdf else section.get("arguments", list, [])
    facts = []
    if predicate:
        facts.append(FactMap(predicate, _arguments(section, "arguments", arguments)))
    for entry in [] if is_rdf else section.tables("facts"):
        name = entry.required_text("predicate")
        listed = entry.get("arguments", list, [])
        facts.append(FactMap(name, _arguments(entry, "arguments", listed)))
        entry.finish()
    if not facts:
        section.problems.add(
            section.route,
            f"{section.name} does not say what facts it gives",
            advice='write `predicate = "…"`, or [[source.facts]] tables',
        )
    return tuple(facts)


def _arguments(
    section: Section, key: str, listed: Sequence[object]
) -> tuple[Argument, ...]:
    found = []
    for at, each in enumerate(listed):
        route = (*section.route, key, at)
        if isinstance(each, str):
            found.append(Argument("column", each))
            continue
        kinds = [
            kind for kind in _ARGUMENT_KINDS if isinstance(each, dict) and kind in each
        ]
        if not isinstance(each, dict) or len(kinds) != 1:
            section.problems.add(
                route,
                f"argument {at + 1} of {section.name} is neither a column nor a table "
                "with one of column, iri, text and value",
                advice='write "name", { iri = "http://…/{id}" }, { text = "…" } or '
                "{ value = 7 }",
            )
            continue
        entry = Section(each, route, section.problems)
        found.append(_argument(kinds[0], entry))
        entry.finish()
    return tuple(found)


def _argument(kind: Any, entry: Section) -> Argument:  # noqa: ANN401  one of the kinds
    if kind == "value":
        value = entry.any("value")
        try:
            known = constant(value)
        except EvermatError as error:
            entry.problem("value", error.message, error.help)
            known = constant("")
        return Argument("value", known.text, int(known.kind))
    text = entry.text(kind)
    if kind == "iri" and re.search(NOT_IN_IRI, HOLE.sub("", text)):
        entry.problem("iri", f"`{text}` is not an IRI, whatever the columns are")
    elif kind == "iri" and not is_absolute(text):
        entry.problem(
            "iri",
            f"`{text}` is relative, and there is nothing that it could be relative to",
            "begin it with a scheme, such as http: or urn:",
        )
    language = None if kind == "iri" else entry.optional_text("language")
    if language is not None and not _LANGUAGE.fullmatch(language):
        entry.problem("language", f"`{language}` is not a tag of a language")
    return Argument(kind, text, language=language)
