"""Reading files: the forms that are accepted, and the texts shown for those not."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.feather as arrow_feather
import pyarrow.parquet as arrow_parquet
import pytest

from evermat.columns import ArityMismatchError, MissingValueError, values
from evermat.errors import EvermatError
from evermat.io import (
    DamagedFileError,
    FileMissingError,
    MalformedFileError,
    NotUnicodeError,
    UnknownColumnError,
    UnknownFormatError,
    UnknownTypeError,
    ValueFormatError,
    predicate_of,
    read_folder,
    read_table,
)
from evermat.io.files import FileOptionError
from evermat.values import IRI, BlankNode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[[str, bytes], Path]


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_csv_has_no_header_by_default(write: Write) -> None:
    table = read_table(write("edge.csv", b"from,to\na,b\n"))
    assert rows(table) == [("from", "to"), ("a", "b")]
    assert table.column_names == ["c1", "c2"]


def test_csv_header_is_read_when_told(write: Write) -> None:
    table = read_table(write("edge.csv", b"from,to\na,1\n"), header=True)
    assert rows(table) == [("a", 1)]
    assert table.column_names == ["from", "to"]


def test_csv_header_is_found_by_the_known_names(write: Write) -> None:
    path = write("edge.csv", b"from,to\na,1\n")
    assert rows(read_table(path, columns=["from", "to"])) == [("a", 1)]
    assert len(rows(read_table(path, columns=["x", "y"]))) == 2
    assert len(rows(read_table(path, columns=["from", "to"], header=False))) == 2


def test_columns_are_chosen_from_a_header_in_order(write: Write) -> None:
    path = write("t.csv", b"a,b,c\n1,2,3\n")
    assert rows(read_table(path, header=True, columns=["c", "a"])) == [(3, 1)]
    with pytest.raises(UnknownColumnError, match=r"`t\.csv` has no column `d`"):
        read_table(path, header=True, columns=["d"])


def test_types_are_guessed_without_changing_texts(write: Write) -> None:
    data = b"a,7,007,1.5,true,1.10\nb,-8,8,2e3,false,1.1\n"
    assert rows(read_table(write("t.csv", data))) == [
        ("a", 7, "007", 1.5, True, "1.10"),
        ("b", -8, "8", 2000.0, False, "1.1"),
    ]


def test_integers_of_any_size_are_guessed(write: Write) -> None:
    table = read_table(write("t.csv", b"1\n123456789012345678901234567890\n"))
    assert values(table["c1"]) == [1, 123456789012345678901234567890]


@pytest.mark.parametrize("text", [b"+1", b"1.", b".5", b"0x1", b"1_000", b" 1", b"NaN"])
def test_texts_that_are_not_clearly_numbers_stay_texts(
    write: Write, text: bytes
) -> None:
    assert rows(read_table(write("t.csv", text + b"\n"))) == [(text.decode(),)]


def test_types_can_be_ordered(write: Write) -> None:
    data = b"007,+3,1.50,3,TRUE,http://a/b,_:x\n8,4,-2,.5,0,<http://c>,<d:e>\n"
    types = ["string", "integer", "decimal", "double", "boolean", "iri", "term"]
    table = read_table(write("t.csv", data), types=types)
    assert rows(table.select([0, 1, 3, 4])) == [
        ("007", 3, 3.0, True),
        ("8", 4, 0.5, False),
    ]
    assert list(map(str, values(table["c3"]))) == ["1.5", "-2.0"]
    assert values(table["c6"]) == [IRI("http://a/b"), IRI("http://c")]
    assert values(table["c7"]) == [BlankNode("x"), IRI("d:e")]


def test_types_can_be_ordered_by_name(write: Write) -> None:
    path = write("t.csv", b"a,b\n1,2\n")
    table = read_table(path, header=True, types={"b": "string"})
    assert rows(table) == [(1, "2")]
    with pytest.raises(UnknownColumnError, match="no column `z`"):
        read_table(path, header=True, types={"z": "string"})
    with pytest.raises(UnknownTypeError, match="there is no column type `float`"):
        read_table(path, types=["float", "string"])
    with pytest.raises(ArityMismatchError, match="2 columns, expected 1"):
        read_table(path, types=["string"])


def test_quoted_fields_hold_anything(write: Write) -> None:
    data = b'"a,b","line 1\nline 2"\r\n"say ""hi""",\xc3\xa9\r\n'
    assert rows(read_table(write("t.csv", data))) == [
        ("a,b", "line 1\nline 2"),
        ('say "hi"', "é"),
    ]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("text", ["", '"', '""', 'a"', '"a'])
def test_the_last_field_may_hold_quotes(write: Write, text: str, end: bytes) -> None:
    field = '"' + text.replace('"', '""') + '"'
    assert rows(read_table(write("t.csv", f"a,{field}".encode() + end))) == [
        ("a", text)
    ]


def test_columns_of_one_name_have_types_of_their_own(write: Write) -> None:
    path = write("t.csv", b"a,a\n1,2\n")
    table = read_table(path, header=True, types=["string", "integer"])
    assert rows(table) == [("1", 2)]
    with pytest.raises(MalformedFileError, match="has several columns `a`"):
        read_table(path, header=True, columns=["a"])


def test_quotes_are_ordinary_when_told(write: Write) -> None:
    path = write("t.csv", b'"a,b\n')
    assert rows(read_table(path, quoting=False)) == [('"a', "b")]


def test_facts_have_tabs_and_no_quotes(write: Write) -> None:
    data = b'a"b\t"c\nd,e\t\n'
    assert rows(read_table(write("t.facts", data))) == [('a"b', '"c'), ("d,e", "")]


def test_facts_without_arguments_are_lines(write: Write) -> None:
    assert read_table(write("t.facts", b"()\n"), arity=0).num_rows == 1
    assert read_table(write("u.facts", b""), arity=0).num_rows == 0


def test_tsv_and_other_delimiters(write: Write) -> None:
    assert rows(read_table(write("t.tsv", b"a\tb\n"))) == [("a", "b")]
    assert rows(read_table(write("t.csv", b"a;b\n"), delimiter=";")) == [("a", "b")]


def test_byte_order_marks_and_line_ends_of_windows_do_not_count(write: Write) -> None:
    data = b"\xef\xbb\xbfa,1\r\n\r\nb,2\r\n"
    assert rows(read_table(write("t.csv", data))) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("data", [b"", b"\n\r\n", b"\xef\xbb\xbf"])
def test_empty_files_have_no_rows(write: Write, data: bytes) -> None:
    path = write("t.csv", data)
    assert read_table(path, arity=2).shape == (0, 2)
    assert read_table(path, columns=["a", "b", "c"]).shape == (0, 3)
    assert read_table(path).shape == (0, 0)
    assert read_table(write("t.facts", data), arity=2).shape == (0, 2)


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2"])
def test_compressed_files_are_read(write: Write, suffix: str) -> None:
    name = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}[suffix]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(b"a,1\n")
    path = write(f"edge.csv{suffix}", sink.getvalue().to_pybytes())
    assert rows(read_table(path)) == [("a", 1)]


def test_gzip_files_of_several_members_are_read_whole(write: Write) -> None:
    path = write("t.csv.gz", gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert rows(read_table(path)) == [("a",), ("b",)]


def test_parquet_arrow_and_json_are_read(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "2024-01-01"]})
    arrow_parquet.write_table(table, tmp_path / "p.parquet")
    arrow_feather.write_feather(table, tmp_path / "p.feather")
    with pa.ipc.new_stream(str(tmp_path / "p.arrow"), table.schema) as stream:
        stream.write_table(table)
    lines = [json.dumps(row) for row in table.to_pylist()]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    for name in ["p.parquet", "p.feather", "p.arrow", "p.jsonl"]:
        assert rows(read_table(tmp_path / name)) == [(1, "x"), (2, "2024-01-01")]
        assert rows(read_table(tmp_path / name, columns=["b"]))[0] == ("x",)
        typed = read_table(tmp_path / name, types={"a": "string", "b": "iri"})
        assert typed["a"].to_pylist() == ["1", "2"]
        assert values(typed["b"])[0] == IRI("x")


def test_dates_in_json_stay_texts(write: Write) -> None:
    table = read_table(write("t.jsonl", b'{"d": "2024-01-01"}\n\n{"d": "2024-01-02"}'))
    assert rows(table) == [("2024-01-01",), ("2024-01-02",)]


@pytest.mark.parametrize("name", [b"\xed\xa0\x80", rb"\ud800"])
def test_names_in_json_with_halves_of_surrogate_pairs(
    name: bytes, write: Write
) -> None:
    path = write("t.jsonl", b'{"a' + name + b'": 1}\n')
    with pytest.raises(EvermatError, match=r"t\.jsonl"):
        read_table(path)


def test_missing_values_are_refused(write: Write) -> None:
    path = write("t.jsonl", b'{"a": 1, "b": 2}\n{"a": 1}\n')
    with pytest.raises(MissingValueError, match="row 2 has no value in column `b`"):
        read_table(path)


def test_tables_of_other_arity_are_refused(tmp_path: Path) -> None:
    arrow_parquet.write_table(pa.table({"a": [1]}), tmp_path / "p.parquet")
    with pytest.raises(
        ArityMismatchError, match=r"`p\.parquet` has 1 column, expected 2"
    ):
        read_table(tmp_path / "p.parquet", arity=2)


def test_many_rows_are_read(write: Write) -> None:
    lines = "".join(f"{n},n{n % 77},{n / 8}\n" for n in range(200_000))
    table = read_table(write("t.csv", lines.encode()))
    assert rows(table) == [(n, f"n{n % 77}", n / 8) for n in range(200_000)]


def test_a_field_may_be_long(write: Write) -> None:
    text = "x" * 2_000_000
    assert rows(read_table(write("t.csv", f'a,"{text}"\n'.encode()))) == [("a", text)]
    lines = f'{{"a": "{text}{text}"}}\n{{"a": "b"}}\n'
    assert rows(read_table(write("t.jsonl", lines.encode())))[1] == ("b",)


def test_integers_of_any_size_are_read_from_json(write: Write) -> None:
    lines = b'{"a": 12345678901234567890, "b": 1e30}\n\n{"a": -1, "b": 2}\n'
    table = read_table(write("t.jsonl", lines))
    assert values(table.column("a")) == [12345678901234567890, -1]
    assert table.column("b").to_pylist() == [1e30, 2.0]


ERRORS: dict[str, tuple[str, bytes, dict[str, object], type[EvermatError], str]] = {
    "wrong value in a column chosen by name": (
        "age.csv",
        b"name,years\nann,x\n",
        {"header": True, "columns": ["years", "name"], "types": {"years": "integer"}},
        ValueFormatError,
        """\
ValueFormatError [EM717]: `x` is not an integer
 --> age.csv:2:5
  |
2 | ann,x
  |     ^
  |
  = help: correct the file, or choose another type for the column""",
    ),
    "open quote in the only row": (
        "edge.csv",
        b'a,"b\n',
        {},
        MalformedFileError,
        """\
MalformedFileError [EM714]: this quote is never closed
 --> edge.csv:1:3
  |
1 | a,"b
  |   ^
  |
  = help: close it, or say `quoting=False` if quotes are ordinary characters""",
    ),
    "too many fields": (
        "edge.csv",
        b'a,"b\nc"\nd,e,f\n',
        {},
        MalformedFileError,
        """\
MalformedFileError [EM714]: this row has 3 fields, expected 2
 --> edge.csv:3:5
  |
3 | d,e,f
  |     ^ one too many
  |
  = reason: all rows of a file have the same number of fields
  = help: quote fields that contain the delimiter""",
    ),
    "too few fields": (
        "edge.facts",
        b"a\tb\nd\n",
        {},
        MalformedFileError,
        """\
MalformedFileError [EM714]: this row has 1 field, expected 2
 --> edge.facts:2:1
  |
2 | d
  | ^ ends here
  |
  = reason: all rows of a file have the same number of fields
  = help: check the delimiter of this row""",
    ),
    "other delimiter": (
        "edge.tsv",
        b"a,b\n",
        {"arity": 2},
        MalformedFileError,
        """\
MalformedFileError [EM714]: this row has 1 field, expected 2
 --> edge.tsv:1:1
  |
1 | a,b
  | ^^^ ends here
  |
  = reason: every row has a field for each column
  = help: the file seems to be separated by commas: say `delimiter=…`""",
    ),
    "values without columns": (
        "started.csv",
        b"()\nyes\n",
        {"arity": 0},
        MalformedFileError,
        """\
MalformedFileError [EM714]: a fact without arguments has values here
 --> started.csv:2:1
  |
2 | yes
  | ^
  |
  = reason: a fact without arguments is a line `()`
  = help: correct the file, or the number of arguments in the rules""",
    ),
    "open quote": (
        "edge.csv",
        b'a,b\nc,"d\ne,f\n',
        {},
        MalformedFileError,
        """\
MalformedFileError [EM714]: this quote is never closed
 --> edge.csv:2:3
  |
2 | c,"d
  |   ^
  |
  = help: close it, or say `quoting=False` if quotes are ordinary characters""",
    ),
    "not of its type": (
        "edge.csv",
        b'n,v\n"a\nb",1\nc,one\n',
        {"header": True, "types": ["string", "integer"]},
        ValueFormatError,
        """\
ValueFormatError [EM717]: `one` is not an integer
 --> edge.csv:4:3
  |
4 | c,one
  |   ^^^
  |
  = help: correct the file, or choose another type for the column""",
    ),
    "not a term": (
        "edge.csv",
        b"<a:b>\n<a b>\n",
        {"types": "term"},
        ValueFormatError,
        """\
ValueFormatError [EM717]: `<a b>` is not a term
 --> edge.csv:2:1
  |
2 | <a b>
  | ^^^^^
  |
  = help: correct the file, or choose another type for the column""",
    ),
    "not UTF-8": (
        "edge.csv",
        b"a,b\nc,d\xff\n",
        {},
        NotUnicodeError,
        """\
NotUnicodeError [EM715]: `edge.csv` is not in UTF-8
 --> edge.csv:2:4
  |
2 | c,d\N{REPLACEMENT CHARACTER}
  |    ^ byte 0xff
  |
  = help: convert it to UTF-8 first""",
    ),
    "UTF-16": (
        "edge.csv",
        "a,b\nc,d\n".encode("utf-16"),
        {},
        NotUnicodeError,
        """\
NotUnicodeError [EM715]: `edge.csv` is in UTF-16
 = help: convert it to UTF-8 first""",
    ),
    "malformed JSON": (
        "edge.jsonl",
        b'{"a": 1}\n{"a": }\n',
        {},
        MalformedFileError,
        """\
MalformedFileError [EM714]: malformed JSON
 --> edge.jsonl:2:7
  |
2 | {"a": }
  |       ^ expecting value
  |""",
    ),
    "not an object": (
        "edge.jsonl",
        b"[1, 2]\n",
        {},
        MalformedFileError,
        """\
MalformedFileError [EM714]: expected a JSON object
 --> edge.jsonl:1:1
  |
1 | [1, 2]
  | ^
  |
  = help: write a line like {"c1": "a", "c2": 7}""",
    ),
    "bad gzip": (
        "edge.csv.gz",
        b"plain text",
        {},
        DamagedFileError,
        """\
DamagedFileError [EM713]: `edge.csv.gz` is not a readable gzip file: \
zlib inflate failed: incorrect header check
 = help: it may have been cut short, or have the wrong suffix""",
    ),
    "short gzip": (
        "edge.csv.gz",
        gzip.compress(b"a,b\n" * 100)[:-12],
        {},
        DamagedFileError,
        """\
DamagedFileError [EM713]: `edge.csv.gz` is not a readable gzip file: \
Truncated compressed stream
 = help: it may have been cut short, or have the wrong suffix""",
    ),
    "unknown suffix": (
        "edge.txt",
        b"",
        {},
        UnknownFormatError,
        """\
UnknownFormatError [EM712]: cannot tell the format of `edge.txt`
 = reason: known suffixes are .csv .tsv .facts .parquet .arrow .feather .jsonl .ndjson \
.nt .nq .ttl .trig .rdf .owl .jsonld .n3, and .gz .zst .bz2 after them
 = help: rename the file, or say `format=…`""",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_where_what_and_how(write: Write, name: str) -> None:
    file_name, data, options, error, text = ERRORS[name]
    path = write(file_name, data)
    with pytest.raises(error) as caught:
        read_table(path, **options)  # type: ignore[arg-type]
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["p.parquet", "p.arrow"])
def test_files_that_are_not_of_their_kind_are_refused(write: Write, name: str) -> None:
    with pytest.raises(DamagedFileError, match=f"`{name}` is not a readable"):
        read_table(write(name, b"junk, and more junk"))


def test_missing_files_are_named_with_those_that_are_near(write: Write) -> None:
    write("edge.csv", b"")
    with pytest.raises(FileMissingError) as caught:
        read_table("edges.csv")
    assert str(caught.value) == (
        "FileMissingError [EM711]: there is no file `edges.csv`\n"
        " = help: did you mean `edge.csv`?"
    )
    with pytest.raises(FileNotFoundError, match="there is no folder `nowhere` either"):
        read_table("nowhere/edge.csv")


def test_predicates_are_named_by_files() -> None:
    assert predicate_of("a/edge.csv") == "edge"
    assert predicate_of("edge.facts.gz") == "edge"
    assert predicate_of("edge.v2.csv") == "edge.v2"
    assert predicate_of("edge") == "edge"


def test_folders_are_read_by_predicate(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("a\tb\n")
    (tmp_path / "edge.csv").write_text("1,2\n")
    (tmp_path / "node.csv.gz").write_bytes(gzip.compress(b"a\n"))
    (tmp_path / "README.md").write_text("# Facts")
    (tmp_path / "more.csv").mkdir()
    found = read_folder(tmp_path)
    assert sorted(found) == ["edge", "node"]
    columns = [values(column) for column in found["edge"].columns]
    assert set(zip(*columns, strict=True)) == {("a", "b"), (1, 2)}
    with pytest.raises(FileMissingError):
        read_folder(tmp_path / "nowhere")


def test_files_of_one_predicate_must_have_the_same_arity(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("a\tb\n")
    (tmp_path / "edge.csv").write_text("1\n")
    with pytest.raises(ArityMismatchError, match="`edge` has 2 columns, expected 1"):
        read_folder(tmp_path)


def test_many_columns_are_texts_like_few(write: Write) -> None:
    width = 1500
    path = write("wide.csv", b",".join([b"007"] * width) + b"\n")
    table = read_table(path)
    assert table.num_columns == width
    assert table.to_pylist() == [dict.fromkeys(table.column_names, "007")]


def test_zeros_with_a_sign_are_no_doubles(write: Write) -> None:
    table = read_table(write("n.csv", b"-0\n0\n"))
    assert table.column(0).to_pylist() == ["-0", "0"]


@pytest.mark.parametrize("delimiter", [";;", "", "é", '"', "\n"])
def test_a_delimiter_is_one_plain_character(write: Write, delimiter: str) -> None:
    with pytest.raises(FileOptionError, match="cannot be the delimiter"):
        read_table(write("t.csv", b"a;;b\n"), delimiter=delimiter)
