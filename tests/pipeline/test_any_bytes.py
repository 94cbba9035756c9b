"""Whatever is in a file: every line becomes facts or is rejected, however it is cut."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evermat.pipeline import files, intake
from evermat.pipeline.errors import SourceError
from evermat.pipeline.intake import LocalIntake
from evermat.rdf import lines as lines_of_rdf
from pipelines import configured

SOURCES = {
    "csv": 'predicate = "p"\nheader = false\ncolumns = { a = "string", b = "integer" }',
    "json": 'predicate = "p"\ncolumns = { a = "string" }',
    "nt": "",
    "nq": "",
}
GOOD = {
    "csv": [b"x,1", b'"x, y",2', b'"say ""hi""",3', b",4", b"x,y"],
    "json": [b'{"a": "x"}', b'{"a": 1.50, "b": null}', b'{"a": {"c": [1]}}', b"[]"],
    "nt": [b"<http://e/a> <http://e/p> <http://e/b> .", b"# said",
           b'_:x <p:q> "\\n"@en .',
           b"<http://e/a>\t<http://e/p> '' ."],
    "nq": [b"<http://e/a> <http://e/p> <http://e/b> <http://e/g> .",
           b'<http://e/a> <http://e/p> "a <b> ." .', b'_:x <p:q> "1"^^<p:t> _:g .'],
}  # fmt: skip
PIECES = [b'"', b",", b"\r", b"\xff", b"\xc3\xa9", b"\0", b" ", b"x", b"{",
          b"\xef\xbb\xbf"]  # fmt: skip


def lines(form: str) -> st.SearchStrategy[list[bytes]]:
    odd = st.lists(st.sampled_from(PIECES), max_size=5).map(b"".join)
    return st.lists(st.one_of(st.sampled_from(GOOD[form]), odd), max_size=8)


def taken(form: str, text: bytes, size: int) -> tuple[Any, ...]:
    """Facts, rejected rows and the number of rows, read in splits of a size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").write_bytes(text)
        config = configured(
            folder, f'[[source]]\nformat = "{form}"\npath = "data"', SOURCES[form]
        )
        (source,) = config.sources
        with (
            mock.patch.object(files, "SPLIT_BYTES", size),
            mock.patch.object(files, "BYTES_AT_ONCE", max(2, size // 2)),
        ):
            found = LocalIntake().take(source, source.paths, str(folder / "aside"))
    facts = [row for table in found.facts.values() for row in table.to_pylist()]  # type: ignore[attr-defined]
    wrong = [(row["position"], row["row"]) for row in found.sample.to_pylist()]
    return sorted(map(str, facts)), sorted(wrong), found.rows


@pytest.mark.parametrize("form", list(SOURCES))
@settings(max_examples=20)
@given(data=st.data())
@example(data=None)
def test_every_line_is_accounted_for(form: str, data: st.DataObject | None) -> None:
    drawn = GOOD[form] if data is None else data.draw(lines(form))
    text = b"\n".join(drawn)
    facts, wrong, count = whole = taken(form, text, 1 << 20)
    assert isinstance(facts, list)
    assert isinstance(wrong, list)
    if form in {"csv", "json"}:
        assert len(facts) + len(wrong) == count
    for position, line in wrong:
        start = text[position:].split(b"\n")[0].rstrip(b"\r")
        shown = start.decode("utf-8", "backslashreplace")
        assert line.rstrip("\r") in {shown, shown.removeprefix("\ufeff")}
    for size in (3, 17):
        assert taken(form, text, size) == whole


def test_a_first_line_that_is_too_long_to_name_columns(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 200_000 + b",b\n1,2\n")
    config = configured(
        tmp_path, '[[source]]\nformat = "csv"\npath = "data"', 'predicate = "p"'
    )
    (source,) = config.sources
    with pytest.raises(SourceError, match="does not name columns"):
        LocalIntake().take(source, source.paths, str(tmp_path / "aside"))


@pytest.mark.parametrize("form", ["nt", "nq"])
def test_many_wrong_lines_are_read_in_linear_time(form: str) -> None:
    text = b"\n".join([*GOOD[form] * 100, b"<http://e/a> <http://e/p> ."] * 20)
    sizes: list[int] = []
    columns_of_lines = lines_of_rdf.columns_of_lines

    def counted(lines: Any, first: int | None) -> list[Any]:
        sizes.append(len(lines))
        return columns_of_lines(lines, first)

    with mock.patch.object(intake, "columns_of_lines", counted):
        _, wrong, _ = taken(form, text, 1 << 20)
    assert len(wrong) == 20
    assert sum(sizes) <= 10 * (text.count(b"\n") + 1)


@pytest.mark.parametrize("label", ["a\u00b7b", "e\u0301", "a\ufeffb", "a\u200db"])
def test_labels_of_blank_nodes_have_all_signs_of_the_standard(label: str) -> None:
    text = f"_:{label} <http://e/p> _:{label} .".encode()
    facts, wrong, _ = taken("nt", text, 1 << 20)
    assert len(list(facts)) == 1
    assert not wrong
