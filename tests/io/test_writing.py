"""Writing files: what is written reads back."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns import (
    constants,
    rows_without_columns,
    table_of_rows,
    term_table,
)
from evermat.io import (
    LeftOutTriplesWarning,
    NotDelimitableError,
    NotTriplesError,
    UnknownFormatError,
    read_table,
    write_table,
)
from evermat.io.delimited import Dialect
from evermat.io.files import UnwritablePlaceError
from evermat.values import IRI, BlankNode, LangString, TypedLiteral

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

MIXED = [
    ("plain", 1, 0.5, IRI("http://a.org/b")),
    ('with "quotes", commas', -7, 1e-7, BlankNode("x")),
    ("two\nlines", 0, 3.0, LangString("chat", "fr")),
    ("", 10**20, -0.0, TypedLiteral("2024", "u:year")),
    ("é\t", 5, 1e300, Decimal("1.5")),
]


def facts(table: pa.Table) -> list[tuple[object, ...]]:
    columns = term_table(table).columns
    return list(zip(*(constants(column) for column in columns), strict=True))


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.zst", "t.csv.bz2"]
)
def test_terms_read_back_exactly_from_texts(tmp_path: Path, name: str) -> None:
    table = table_of_rows(MIXED, 4)
    write_table(table, tmp_path / name, terms=True)
    assert facts(read_table(tmp_path / name, types="term")) == facts(table)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.parquet.gz"])
def test_terms_read_back_exactly_from_tables(tmp_path: Path, name: str) -> None:
    table = table_of_rows(MIXED, 4)
    write_table(table, tmp_path / name, terms=True)
    assert facts(read_table(tmp_path / name)) == facts(table)


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_any_texts_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("texts") / "t.csv"
    table = table_of_rows(rows, 2)
    write_table(table, path)
    read = read_table(path, types="string")
    assert facts(read) == facts(table)


@pytest.mark.parametrize("name", ["t.csv", "t.facts", "t.parquet", "t.arrow"])
def test_plain_columns_read_back(tmp_path: Path, name: str) -> None:
    rows = [("a", 1, 0.5, True), ("b", -2, 1e-9, False)]
    table = table_of_rows(rows, 4)
    write_table(table, tmp_path / name)
    assert facts(read_table(tmp_path / name)) == facts(table)


def test_plain_texts_have_no_syntax(tmp_path: Path) -> None:
    rows = [(IRI("a:b"), "x y", 2.0), (BlankNode("n"), 'say "hi"', 0.1)]
    write_table(table_of_rows(rows, 3), tmp_path / "t.csv", header=True)
    assert (tmp_path / "t.csv").read_text() == (
        'c1,c2,c3\na:b,x y,2.0\n_:n,"say ""hi""",0.1\n'
    )


def test_facts_without_arguments_are_written(tmp_path: Path) -> None:
    write_table(rows_without_columns(1), tmp_path / "t.facts")
    assert (tmp_path / "t.facts").read_text() == "()\n"
    assert read_table(tmp_path / "t.facts", arity=0).num_rows == 1
    for name in ["t.arrow", "t.parquet", "t.parquet.gz"]:
        for count in (0, 1):
            write_table(rows_without_columns(count), tmp_path / name)
            assert read_table(tmp_path / name).shape == (count, 0)


def test_no_rows_are_written(tmp_path: Path) -> None:
    for name in ["t.csv", "t.nt", "t.parquet"]:
        write_table(table_of_rows([], 2), tmp_path / name)
    assert (tmp_path / "t.csv").read_bytes() == b""
    assert read_table(tmp_path / "t.parquet").shape == (0, 2)


def test_facts_files_refuse_what_they_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "t.facts"
    path.write_text("before\n")
    with pytest.raises(NotDelimitableError) as caught:
        write_table(table_of_rows([("a",), ("b\tc",)], 1), path)
    assert str(caught.value) == (
        "NotDelimitableError [EM722]: row 2 has a text with a tab or a line end: "
        "'b\\tc'\n"
        " = reason: a `.facts` file has no quotes\n"
        " = help: write `.csv`, `.tsv` or `.parquet`"
    )
    assert path.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [path]


def test_ntriples_of_three_two_and_one_columns(tmp_path: Path) -> None:
    subject = IRI("a:s")
    triple = table_of_rows([(subject, IRI("a:p"), 7)], 3)
    write_table(triple, tmp_path / "triple.nt")
    assert (tmp_path / "triple.nt").read_text() == (
        '<a:s> <a:p> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    )
    write_table(table_of_rows([(subject, "x")], 2), tmp_path / "likes.nt")
    assert (tmp_path / "likes.nt").read_text() == '<a:s> <urn:likes> "x" .\n'
    person = table_of_rows([(subject,)], 1)
    write_table(person, tmp_path / "p.nt", predicate="a:Person")
    assert (tmp_path / "p.nt").read_text() == (
        "<a:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <a:Person> .\n"
    )


def test_ntriples_refuse_what_is_no_triple(tmp_path: Path) -> None:
    with pytest.raises(NotTriplesError) as caught:
        write_table(table_of_rows([("a", "b"), ("b", "c")], 2), tmp_path / "edge.nt")
    assert not (tmp_path / "edge.nt").exists()
    assert str(caught.value) == (
        'NotTriplesError [EM721]: row 1 has "a" as its subject, '
        "and no row is a triple\n"
        " = reason: the subject of a triple is an IRI or blank node\n"
        " = help: write `.csv` or `.parquet` instead"
    )
    with pytest.raises(NotTriplesError, match="rows with 4 columns"):
        write_table(table_of_rows(MIXED, 4), tmp_path / "edge.nt")


def test_what_is_no_triple_is_left_out_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.io.ntriples.ROWS_AT_ONCE", 2)
    good = [(IRI("a:s"), IRI("a:p"), 1), (BlankNode("b"), IRI("a:p"), IRI("a:o"))]
    bad = [(7, IRI("a:p"), 1), ("x", "y", "z"), (IRI("a:s"), "p", 1),
           (IRI("a:s"), BlankNode("p"), 1)]  # fmt: skip
    table = table_of_rows([*bad, *good, *bad], 3)
    with pytest.warns(LeftOutTriplesWarning) as told:
        write_table(table, tmp_path / "t.nt")
    (warning,) = told
    assert str(warning.message) == (
        "LeftOutTriplesWarning [EM913]: 8 of 10 triples left out of `t.nt`: 4 with a "
        "literal as subject, 2 with a literal as predicate, 2 with a blank node as "
        "predicate\n"
        " = reason: in RDF a subject is an IRI or a blank node, a predicate an IRI\n"
        " = help: write `.csv` or `.parquet` to have all of them"
    )
    write_table(table_of_rows(good, 3), tmp_path / "good.nt")
    assert (tmp_path / "t.nt").read_text() == (tmp_path / "good.nt").read_text()


@pytest.mark.parametrize("delimiter", [",", "]", "[", "^", "-", "\\", "|", "\t"])
def test_texts_with_any_delimiter_are_quoted(tmp_path: Path, delimiter: str) -> None:
    table = table_of_rows([(f"a{delimiter}b", "c")], 2)
    write_table(table, tmp_path / "t.csv", dialect=Dialect(delimiter))
    assert read_table(tmp_path / "t.csv", delimiter=delimiter) == table


def test_formats_that_are_only_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError):
        write_table(table_of_rows([(1,)], 1), tmp_path / "t.jsonl")
    with pytest.raises(UnknownFormatError):
        write_table(table_of_rows([(1,)], 1), tmp_path / "t.txt")


def test_places_without_room_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    for name in ("folder.csv", "file/t.csv"):
        with pytest.raises(UnwritablePlaceError):
            write_table(table_of_rows([(1,)], 1), tmp_path / name)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["file", "folder.csv"]


def test_many_rows_are_written(tmp_path: Path) -> None:
    rows = [(number, f"name {number}") for number in range(200_000)]
    write_table(table_of_rows(rows, 2), tmp_path / "t.csv.zst")
    read = read_table(tmp_path / "t.csv.zst")
    columns = [column.to_pylist() for column in read.columns]
    assert list(zip(*columns, strict=True)) == rows
