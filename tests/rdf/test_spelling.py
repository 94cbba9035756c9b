"""No RDF file is written that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import IRI, BlankNode, KnowledgeBase, LangString, TypedLiteral
from evermat.io import NotTriplesError
from evermat.rdf import read_rdf

if TYPE_CHECKING:
    from pathlib import Path

    from evermat import Value

SUBJECT, PREDICATE = IRI("http://e/s"), IRI("http://e/p")
WRONG: list[Value] = [
    IRI("http://a b"),
    IRI("http://a> <http://b> <http://c> .\n<http://d"),
    IRI("http://a\\b"),
    BlankNode("a b"),
    BlankNode("a> ."),
    LangString("chat", "not a tag"),
    LangString("chat", "fr--up"),
    TypedLiteral("x", "no iri"),
]
RIGHT: list[Value] = [
    IRI("http://e/é?a=b#c"),
    BlankNode("b.1-é"),
    LangString("a b <>", "de-at"),
    LangString("a b <>", "ar-eg--rtl"),
    TypedLiteral("a b\n<>", "http://e/d"),
    'a "b"\n<\\>',
    7,
]


@pytest.mark.parametrize("suffix", ["nt", "nq", "ttl", "trig", "rdf"])
@pytest.mark.parametrize("value", WRONG, ids=str)
def test_what_rdf_cannot_hold_is_refused(
    value: Value, suffix: str, tmp_path: Path
) -> None:
    rows = [(SUBJECT, PREDICATE, each) for each in (*RIGHT, value)]
    kb = KnowledgeBase(engine="reference")
    kb.insert("triple", rows)
    path = tmp_path / f"a.{suffix}"
    with pytest.raises(NotTriplesError, match="which RDF cannot hold"):
        kb.facts("triple").write(path)
    assert not path.exists()


@pytest.mark.parametrize("suffix", ["nt", "nq", "ttl", "trig", "rdf"])
def test_all_else_reads_back(suffix: str, tmp_path: Path) -> None:
    kb = KnowledgeBase(engine="reference")
    kb.insert("triple", [(SUBJECT, PREDICATE, each) for each in RIGHT])
    path = tmp_path / f"a.{suffix}"
    kb.facts("triple").write(path)
    again = KnowledgeBase(engine="reference")
    again.insert("triple", read_rdf(path, blank_scope=False))
    found = set(again.facts("triple").constants())
    assert found == set(kb.facts("triple").constants())
