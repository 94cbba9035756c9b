"""Writing RDF: what is written reads back."""

from __future__ import annotations

import xml.parsers.expat
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.columns import table_of_rows, term_texts
from evermat.io import LeftOutTriplesWarning, NotTriplesError, UnknownFormatError
from evermat.rdf import PREFIXES, read_rdf, write_rdf
from evermat.values import IRI, BlankNode, LangString, TypedLiteral

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

SUBJECT = IRI("http://x/a")
PREDICATE = IRI("http://x/p")
OBJECTS = [
    IRI("http://x/b"),
    BlankNode("n1"),
    'é "quoted"\n\ttext \\',
    7,
    Decimal("1.50"),
    2.5,
    float("inf"),
    float("nan"),
    True,
    LangString("chat", "fr"),
    TypedLiteral("x", "http://x/d"),
]
TABLE = table_of_rows([(SUBJECT, PREDICATE, value) for value in OBJECTS], 3)


def triples(table: pa.Table) -> set[tuple[str, ...]]:
    columns = [term_texts(column).to_pylist() for column in table.columns]
    return set(zip(*columns, strict=True))


@pytest.mark.parametrize(
    "name", ["t.nt", "t.nq", "t.nt.gz", "t.ttl", "t.trig", "t.rdf", "t.ttl.zst"]
)
def test_triples_read_back(tmp_path: Path, name: str) -> None:
    write_rdf(TABLE, tmp_path / name)
    kept = read_rdf(tmp_path / name, blank_scope=False)
    found = {row for row in triples(kept) if not row[2].startswith("_:")}
    expected = triples(read_back(tmp_path))
    assert found == {row for row in expected if not row[2].startswith("_:")}
    assert kept.num_rows == len(OBJECTS)


def read_back(folder: Path) -> pa.Table:
    write_rdf(TABLE, folder / "expected.nt")
    return read_rdf(folder / "expected.nt")


def test_turtle_uses_the_usual_prefixes(tmp_path: Path) -> None:
    typed = table_of_rows([(SUBJECT,)], 1)
    write_rdf(typed, tmp_path / "t.ttl", predicate=PREFIXES["owl"] + "Thing")
    assert "owl:Thing" in (tmp_path / "t.ttl").read_text()
    write_rdf(
        typed, tmp_path / "u.ttl", predicate="http://x/P", prefixes={"x": "http://x/"}
    )
    assert "x:a a x:P" in (tmp_path / "u.ttl").read_text()


def test_what_is_no_triple_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(NotTriplesError, match='row 1 has "a" as its subject'):
        write_rdf(table_of_rows([("a", "b")], 2), tmp_path / "t.ttl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("predicate", "value"),
    [
        ("http://x/p", "a\x00b"),
        ("http://x/p", "\x01"),
        ("http://x/p", "\x0b"),
        ("http://x/p", "\ufffe"),
        ("http://x/p", BlankNode("1")),
        ("http://x/", "a"),
        ("http://x/2020", "a"),
        ("http://x/-1.5", "a"),
    ],
    ids=repr,
)
def test_what_xml_cannot_hold_is_refused(
    tmp_path: Path, predicate: str, value: object
) -> None:
    table = table_of_rows([(IRI("http://x/s"), IRI(predicate), value)], 3)
    with pytest.raises(NotTriplesError, match="XML cannot hold"):
        write_rdf(table, tmp_path / "t.rdf")
    assert not (tmp_path / "t.rdf").exists()
    write_rdf(table, tmp_path / "t.ttl")
    assert read_rdf(tmp_path / "t.ttl").num_rows == 1


@pytest.mark.parametrize("name", ["p", "p1", "a-1", "_1", "1a", "é", "a%20b", "x#y"])
def test_predicates_end_with_names_of_xml(tmp_path: Path, name: str) -> None:
    row = (IRI("http://x/s"), IRI(f"http://x/{name}"), "a")
    write_rdf(table_of_rows([row], 3), tmp_path / "t.rdf")
    xml.parsers.expat.ParserCreate().Parse((tmp_path / "t.rdf").read_bytes(), True)  # noqa: FBT003
    (found,) = term_texts(read_rdf(tmp_path / "t.rdf").column("p")).to_pylist()
    assert found == f"<http://x/{name}>"


def test_texts_that_look_like_labels_are_no_labels(tmp_path: Path) -> None:
    table = table_of_rows([(IRI("http://x/s"), IRI("http://x/p"), "a _:1 .")], 3)
    write_rdf(table, tmp_path / "t.rdf")
    assert read_rdf(tmp_path / "t.rdf").num_rows == 1


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match=r"`t\.csv`"):
        write_rdf(TABLE, tmp_path / "t.csv")


def test_many_triples_are_written(tmp_path: Path) -> None:
    rows = [(IRI(f"u:n{n}"), IRI("u:p"), n) for n in range(200_000)]
    write_rdf(table_of_rows(rows, 3), tmp_path / "t.nt.zst")
    assert triples(read_rdf(tmp_path / "t.nt.zst")) == {
        (f"<u:n{n}>", "<u:p>", str(n)) for n in range(200_000)
    }


@pytest.mark.parametrize("suffix", ["nt", "nq", "ttl", "trig", "rdf", "ttl.gz"])
def test_literals_as_subjects_are_left_out(tmp_path: Path, suffix: str) -> None:
    kb = KnowledgeBase("@include rdfs .", engine="reference")
    age, number = IRI("http://x/age"), IRI(PREFIXES["xsd"] + "integer")
    kb.insert("triple", [(age, IRI(PREFIXES["rdfs"] + "range"), number)])
    kb.insert("triple", [(SUBJECT, age, 7)])
    with pytest.warns(LeftOutTriplesWarning, match="1 of 3 triples left out of"):
        kb.facts("triple").write(tmp_path / f"closure.{suffix}")
    assert read_rdf(tmp_path / f"closure.{suffix}").num_rows == 2
