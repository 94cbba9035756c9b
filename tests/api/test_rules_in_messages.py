"""Messages show rules as their authors wrote them, and advice that can be followed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evermat import Budget, EvermatError, KnowledgeBase
from evermat.errors import UnknownPrefixError
from evermat.kb.program_files import read_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evermat.kb.program_files import Syntax

GROWING = "p(?x, ?y + 1) :- p(?x, ?y), r(_, ?x), not s(?x, _) ."
START = 'p("a", 1) . r("b", "a") .'


def message(action: Callable[[], object]) -> str:
    with pytest.raises(EvermatError) as caught:
        action()
    return str(caught.value)


def test_rules_are_shown_as_they_were_written(engine_name: str) -> None:
    def grow(budget: Budget) -> KnowledgeBase:
        return KnowledgeBase([GROWING, START], engine=engine_name, budget=budget)

    divided = "q(?x, ?y / 0) :- p(?x, ?y), r(_, ?x) ."
    bounded = "p(?x, ?y + 1) :- p(?x, ?y), r(_, ?x), ?y < 5, not s(?x, _) ."
    kb = KnowledgeBase([bounded, START], engine=engine_name)
    assert GROWING in message(lambda: grow(Budget(rounds=5)))
    assert GROWING in message(lambda: grow(Budget(facts=5)))
    assert divided in message(lambda: kb.update(add_rules=divided))
    assert bounded in message(
        lambda: kb.update(insert={"p": [("a", 9)]}, algorithm="counting")
    )
    assert bounded in message(lambda: kb.explain('p("a", 4)', limit=1))


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("evermat", "p(?x) :- ex:q(?x) ."),
        ("nemo", "p(?x) :- q(?x, ex:a) ."),
        ("dlog", "ex:C(?X) :- ex:D(?X) ."),
    ],
)
def test_advice_about_prefixes_can_be_followed(syntax: Syntax, text: str) -> None:
    with pytest.raises(UnknownPrefixError) as caught:
        read_program(text, syntax)
    assert read_program(f"{advised(caught.value)}\n{text}", syntax).rules


def test_advice_about_prefixes_can_be_followed_in_queries() -> None:
    kb = KnowledgeBase("[<http://example.org/a>, a, ?c] :- class(?c) . class(1) .")
    asked = "[ex:a, a, ?c]"
    with pytest.raises(UnknownPrefixError) as caught:
        kb.query(asked)
    assert kb.query(f"{advised(caught.value)} {asked}").to_list() == [(1,)]
    with pytest.raises(UnknownPrefixError) as caught:
        kb.explain("[ex:a, a, 1]")
    assert kb.explain(f"{advised(caught.value)} [ex:a, a, 1]").holds
    assert kb.query("@base <http://example.org/> . [<a>, a, ?c]").to_list() == [(1,)]
    text = message(lambda: kb.query("@declare p(int) . p(?x)"))
    assert "`@declare` cannot stand before a query" in text


def advised(error: EvermatError) -> str:
    """What an error advises to write."""
    found = re.search("`(.*?)`", error.help or "")
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x WHERE { ?x a ?c }",
        "prefix ex: <http://example.org/>\nask { ex:a a ?c }",
    ],
)
def test_queries_in_sparql_are_recognised(text: str) -> None:
    kb = KnowledgeBase("p(1) .")
    assert "a query in SPARQL" in message(lambda: kb.query(text))
    assert "a query in SPARQL" in message(lambda: KnowledgeBase(text))
    assert "a query in SPARQL" in message(lambda: read_program(text))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("?- p(?x)", "leave `?-` out"),
        ("p(?x)?", "a query ends without a question mark"),
    ],
)
def test_queries_as_prolog_and_others_write_them(text: str, advice: str) -> None:
    kb = KnowledgeBase("p(1) .", engine="reference")
    assert advice in message(lambda: kb.query(text))


@pytest.mark.parametrize("name", ["edge.csv", "ontology.ttl", "edge.parquet"])
def test_files_of_facts_are_no_rules(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("" if name.endswith("ttl") else "a,b\n")
    text = message(lambda: KnowledgeBase(tmp_path / name))
    assert f"{name}` is a file of facts, not of rules" in text
