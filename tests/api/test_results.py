"""Results: one table, many forms."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat import IRI, EvermatError, KnowledgeBase, Result

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def result() -> Result:
    kb = KnowledgeBase(engine="reference")
    kb.insert("p", [("a", 1), ("b", 2)])
    return kb.query("p(?name, ?number)")


def test_rows_are_tuples_of_python_values(result: Result) -> None:
    assert sorted(result) == [("a", 1), ("b", 2)]
    assert sorted(result.to_list()) == [("a", 1), ("b", 2)]
    assert len(result) == 2
    assert ("a", 1) in result
    assert ("a", 1.0) not in result
    assert "a" not in result


def test_frames_have_natural_types(result: Result) -> None:
    arrow = result.to_arrow()
    assert arrow.schema == pa.schema([("name", pa.string()), ("number", pa.int64())])
    assert sorted(result.to_polars().rows()) == [("a", 1), ("b", 2)]
    frame = result.to_pandas()
    assert list(frame.columns) == ["name", "number"]
    assert sorted(frame["number"]) == [1, 2]


def test_mixed_columns_are_written_as_terms() -> None:
    kb = KnowledgeBase(engine="reference")
    kb.insert("p", [("a",), (1,), (IRI("http://e.org/x"),)])
    texts = kb.facts("p").to_arrow().column(0).to_pylist()
    assert sorted(texts) == ['"a"', "1", "<http://e.org/x>"]


def test_writing_goes_by_suffix(result: Result, tmp_path: Path) -> None:
    result.write(tmp_path / "p.csv")
    assert sorted((tmp_path / "p.csv").read_text().splitlines()) == ["a,1", "b,2"]
    result.write(tmp_path / "p.parquet")
    assert pq.read_table(tmp_path / "p.parquet").num_rows == 2
    with pytest.raises(EvermatError, match="cannot tell the format"):
        result.write(tmp_path / "p.unknown")


def test_triples_can_be_written_as_rdf(tmp_path: Path) -> None:
    kb = KnowledgeBase(engine="reference")
    kb.insert("triple", [(IRI("http://e/s"), IRI("http://e/p"), "o")])
    kb.facts("triple").write(tmp_path / "out.nt")
    line = '<http://e/s> <http://e/p> "o" .\n'
    assert (tmp_path / "out.nt").read_text() == line


def test_repr_shows_the_first_rows(result: Result) -> None:
    lines = repr(result).splitlines()
    assert lines[0] == "<Result name, number: 2 rows>"
    assert sorted(lines[1:]) == ['  "a", 1', '  "b", 2']
    kb = KnowledgeBase(engine="reference")
    kb.insert("n", [(number,) for number in range(30)])
    assert repr(kb.facts("n")).endswith("… and 20 more")


def test_answers_without_columns_say_yes_or_no() -> None:
    kb = KnowledgeBase("p(1) .", engine="reference")
    yes, no = kb.query("p(1)"), kb.query("p(2)")
    assert [repr(yes), repr(no)] == ["<Result yes: 1 row>", "<Result no: 0 rows>"]
    assert [yes._repr_html_(), no._repr_html_()] == ["<p>yes</p>", "<p>no</p>"]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_library_is_named(
    result: Result, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"evermat\[{package}\]"):
        getattr(result, f"to_{package}")()


@pytest.mark.parametrize("value", [None, object(), b"a", [1]])
def test_what_is_no_constant_is_in_no_row(value: object) -> None:
    facts = KnowledgeBase("p(a) .").facts("p")
    assert ("a",) in facts
    assert (value,) not in facts
