"""Events in all their forms, and what is said about bad ones."""

from __future__ import annotations

import json

import pytest

from evermat.pipeline.stream_events import (
    from_columns,
    from_csv,
    from_json,
    read_events,
)
from evermat.values import IRI, constant

KNOWN = {"edge": 2, "yes": 0}


def event(sign: object, predicate: object, *values: object) -> str:
    return json.dumps({"sign": sign, "predicate": predicate, "values": list(values)})


def row(*values: object) -> tuple[object, ...]:
    return tuple(constant(value) for value in values)


def test_values_are_what_json_says_they_are() -> None:
    lines = [
        event("+", "edge", "1", 1),
        event("+", "edge", "x", 2.5),
        event("+", "new", {"term": "<http://example.org/a>"}),
        event("+", "yes"),
    ]
    events = read_events(lines, from_json, KNOWN)
    assert events.insert == {
        "edge": [row("1", 1), row("x", 2.5)],
        "new": [row(IRI("http://example.org/a"))],
        "yes": [()],
    }
    assert not events.bad


def test_values_in_csv_and_columns_are_texts_of_terms() -> None:
    events = read_events(['+,edge,a,"""1"""', "+,edge,1,<http://e/x>"], from_csv, KNOWN)
    assert events.insert["edge"] == [row("a", "1"), row(1, IRI("http://e/x"))]
    raw = [{"sign": "-", "predicate": "edge", "values": ['"a"', "7"]}]
    assert read_events(raw, from_columns, KNOWN).delete == {"edge": [row("a", 7)]}


def test_the_last_event_about_a_fact_counts() -> None:
    lines = [
        event("+", "edge", 1, 2),
        event("-", "edge", 1, 2),
        event("-", "edge", 3, 4),
        event("+", "edge", 3, 4),
    ]
    events = read_events(lines, from_json, KNOWN)
    assert events.count == 4
    assert events.insert == {"edge": [row(3, 4)]}
    assert events.delete == {"edge": [row(1, 2)]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        ('{"sign": "+", "predicate": "edge"}', "`values` is missing"),
        (event("*", "edge", 1, 2), "neither `+` nor `-`"),
        (event(["+"], "edge", 1, 2), "neither `+` nor `-`"),
        (event("+", "", 1), "cannot be the name"),
        (event("+", "~edge", 1), "cannot be the name"),
        (event("+", 7, 1), "cannot be the name"),
        (event("+", "edge", 1), "has 2 arguments, not 1"),
        (event("+", "edge", 1, None), "a value is missing"),
        (event("+", "edge", 1, [2]), "is not a value"),
        (event("+", "edge", 1, {"term": '"open'}), "is not a term"),
        (event("-", "unknown", 1), "nothing to delete"),
        ('{"sign": "+", "predicate": "edge", "values": 1}', "not a list"),
    ],
)
def test_bad_events_are_told_apart(line: str, reason: str) -> None:
    events = read_events([event("+", "edge", 1, 2), line], from_json, KNOWN)
    assert events.insert == {"edge": [row(1, 2)]}
    (bad,) = events.bad
    assert (bad.position, bad.event) == (1, line)
    assert reason in bad.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"sign": "\xff"}', "not UTF-8: byte 0xff at position 10"),
        (b'{"sign": "\\ud800"}', "half of a pair of surrogates"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_lines_that_are_no_texts(line: bytes, reason: str) -> None:
    good = event("+", "edge", 1, 2).encode()
    events = read_events([good, line], from_json, KNOWN)
    assert events.insert == {"edge": [row(1, 2)]}
    (bad,) = events.bad
    assert bad.event == line.decode("utf-8", "backslashreplace")
    assert reason in bad.reason


@pytest.mark.parametrize("line", ["+", "", '+,edge,"open', "?,edge,1,2"])
def test_bad_lines_of_csv(line: str) -> None:
    assert len(read_events([line], from_csv, KNOWN).bad) == 1


def test_a_new_predicate_has_the_arity_of_its_first_event() -> None:
    lines = [event("+", "new", 1), event("+", "new", 1, 2)]
    events = read_events(lines, from_json, KNOWN)
    assert events.insert == {"new": [row(1)]}
    assert "has 1 arguments, not 2" in events.bad[0].reason
