"""Graphs, datasets and stores are loaded; named graphs are kept apart where asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph
import pytest
import rdflib

from evermat import IRI, KnowledgeBase
from evermat.kb.requests import RequestError
from evermat.rdf.reading import RdfSyntaxError

if TYPE_CHECKING:
    from pathlib import Path

TRIG = """
@prefix : <http://e/> .
:a :p :b . :g { :c :p :d , 5 } _:x { _:x :q "v" }
"""


def sizes(kb: KnowledgeBase) -> tuple[int, ...]:
    return tuple(kb.count(name) if name in kb else 0 for name in ("triple", "quad"))


@pytest.fixture
def trig(tmp_path: Path) -> Path:
    (tmp_path / "data.trig").write_text(TRIG)
    return tmp_path / "data.trig"


def test_files_with_named_graphs(trig: Path) -> None:
    kb = KnowledgeBase()
    kb.load(rdf=trig)
    assert sizes(kb) == (4, 0)
    kb = KnowledgeBase()
    kb.load(rdf=trig, named_graphs=True)
    assert sizes(kb) == (1, 3)
    (row,) = kb.query("[?s, <http://e/q>, ?o, ?g]")
    assert row[0] == row[2]  # a blank node
    assert kb.count("quad") == len(set(kb.query("[?s, ?p, ?o, ?g]")))


def test_other_files_have_no_named_graphs(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n")
    kb = KnowledgeBase()
    kb.load(rdf=tmp_path / "a.nt", named_graphs=True)
    assert sizes(kb) == (1, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in rdflib itself
def test_objects_of_libraries(trig: Path) -> None:
    dataset = rdflib.Dataset()
    dataset.parse(data=TRIG, format="trig")
    store = pyoxigraph.Store()
    store.load(path=str(trig), format=pyoxigraph.RdfFormat.TRIG)
    graph = rdflib.Graph().parse(data="<http://e/a> <http://e/p> 5 .", format="turtle")
    for given in (dataset, store):
        kb = KnowledgeBase()
        kb.load(rdf=given, named_graphs=True)
        assert sizes(kb) == (1, 3)
        assert (IRI("http://e/c"), IRI("http://e/p"), 5, IRI("http://e/g")) in set(
            kb["quad"]
        )
        kb = KnowledgeBase()
        kb.load(rdf=[given, graph])
        assert sizes(kb) == (5, 0)
    kb = KnowledgeBase()
    kb.load(rdf=graph)
    assert kb["triple"].to_list() == [(IRI("http://e/a"), IRI("http://e/p"), 5)]
    with pytest.raises(RequestError):
        kb.load(rdf=[7])
    with pytest.raises(RequestError):
        kb.load(rdf=7)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonld", '{"@id": "http://e/a", "http://e/p": {"@id": "http://e/b"}}'),
        ("a.n3", "@prefix : <http://e/> . :a :p :b ."),
    ],
)
def test_json_ld_and_n3(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    kb = KnowledgeBase()
    kb.load(rdf=tmp_path / name)
    triple = IRI("http://e/a"), IRI("http://e/p"), IRI("http://e/b")
    assert kb["triple"].to_list() == [triple]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.n3", "@prefix : <http://e/> . { ?x :p ?y } => { ?y :p ?x } ."),
        ("a.ttl", "@prefix : <http://e/> . :a :p <<( :a :b :c )>> ."),
        ("a.jsonld", "{"),
    ],
)
def test_what_is_no_rdf_1_1_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RdfSyntaxError):
        KnowledgeBase().load(rdf=tmp_path / name)
