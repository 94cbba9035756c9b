"""Input that unpacks, nests or expands without end is refused, and names the limit."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.feather as arrow_feather
import pyarrow.parquet as arrow_parquet
import pytest

from evermat.errors import EvermatError, ParseError
from evermat.io.arrow_messages import announced_bytes
from evermat.io.toml_text import read_toml
from evermat.kb.inputs import read_fact_file
from evermat.kb.program_files import read_program
from evermat.lang.parser import parse_program
from evermat.pipeline.config import FactMap, Source
from evermat.pipeline.intake import LocalIntake
from evermat.rdf import read_ontology
from evermat.runtime.input_limits import (
    AxiomSizeError,
    LimitSettingError,
    NestingError,
    ProgramSizeError,
    UnpackedSizeError,
    WidthError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DEEP = 50_000
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
PREFIXES = """@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def laughing() -> str:
    entities = "".join(
        f'<!ENTITY a{at} "{f"&a{at - 1};" * 10}">' for at in range(1, 10)
    )
    doctype = f'<!DOCTYPE r [<!ENTITY a0 "ha">{entities}]>'
    return (
        f'{doctype}<rdf:RDF {RDF}><rdf:Description rdf:about="u:a">'
        "<e:p>&a9;</e:p></rdf:Description></rdf:RDF>"
    )


def deep_xml(*, with_signs: bool) -> str:
    text = "/>" if with_signs else ""
    opened = f"<rdf:Description><e:p>{text}" * DEEP
    closed = "</e:p></rdf:Description>" * DEEP
    return f"<rdf:RDF {RDF}>{opened}{closed}</rdf:RDF>"


NESTED_TRIPLES = "<<( <u:a> <u:p> " * DEEP + "<u:o>" + " )>>" * DEEP


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("laughs.rdf", laughing(), UnpackedSizeError),
        ("deep.rdf", deep_xml(with_signs=False), NestingError),
        ("signs.rdf", deep_xml(with_signs=True), NestingError),
        ("deep.ttl", f"<u:a> <u:p> {NESTED_TRIPLES} .", NestingError),
        ("deep.nt", f"<u:a> <u:p> {NESTED_TRIPLES} .\n", EvermatError),
        ("deep.jsonl", '{"a":' + "[" * DEEP + "]" * DEEP + "}\n", NestingError),
        (
            "lines.jsonl",
            '{"a":\n' * DEEP + "1" + "}" * DEEP + "\n" * DEEP,
            NestingError,
        ),
        ("wide.csv", ",".join("1" * 1_000_000), WidthError),
        ("quoted.csv", '"\n",' + ",".join("1" * 20_000), WidthError),
        ("wide.jsonl", json.dumps(dict.fromkeys(map(str, range(20_000)))), WidthError),
        ("names.jsonl", "".join(f'{{"a{n}":1}}\n' for n in range(20_000)), WidthError),
    ],
)
def test_a_limit_is_kept(
    name: str, text: str, error: type[EvermatError], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=name):
        read_fact_file(tmp_path / name)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("form", ["p.csv", "p.nt", "p.dl"])
def test_bombs_are_not_unpacked(form: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / (form + suffix)
    block = b"#" * (1 << 20)
    if form == "p.dl" and suffix == ".zst":
        return  # programs are packed with gzip only
    if suffix == ".gz":
        path.write_bytes(gzip.compress(block) * 100)
    else:
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            for _ in range(100):
                stream.write(block)
    with pytest.raises(UnpackedSizeError, match=r"EVERMAT_MAX_UNPACKED_RATIO"):
        read_program(path) if form == "p.dl" else read_fact_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEP,
        "a = " + "{a=" * DEEP,
        "a." * DEEP + "a = 1",
        "[" + "a." * 200,
    ],
)
def test_deep_toml(text: str) -> None:
    with pytest.raises(NestingError, match=r"x\.toml"):
        read_toml(text, "x.toml")


UNIONS = " ".join(f"[ owl:unionOf (:A{at} :B{at}) ]" for at in range(40))
SHARED = " ".join(
    f"_:a{at} owl:unionOf (_:a{at + 1} _:a{at + 1}) ." for at in range(60)
)


@pytest.mark.parametrize(
    ("axioms", "error"),
    [
        ("[ owl:intersectionOf (:A " * 400 + ":A" + ")]" * 400, NestingError),
        (f"[ owl:intersectionOf ({UNIONS}) ]", AxiomSizeError),
        (f"{SHARED} _:a0", AxiomSizeError),
    ],
    ids=["deep", "exponential", "shared"],
)
def test_class_expressions(
    axioms: str, error: type[EvermatError], tmp_path: Path
) -> None:
    path = tmp_path / "o.ttl"
    path.write_text(f"{PREFIXES}{axioms} rdfs:subClassOf :B .")
    with pytest.raises(error, match=r"o\.ttl"):
        read_ontology(path)


def test_a_wide_intersection_is_one_rule(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    members = " ".join(f":A{at}" for at in range(2000))
    path.write_text(
        f"{PREFIXES}[ owl:intersectionOf ({members}) ] rdfs:subClassOf :B ."
    )
    (rule,) = (rule for rule in read_ontology(path).rules if len(rule.body) > 1)
    assert len(rule.body) == 2000


def test_large_programs() -> None:
    with pytest.raises(ProgramSizeError, match="EVERMAT_MAX_RULES"):
        read_program("p :- q .\n" * 250_001)
    with pytest.raises(ProgramSizeError, match="20,000 arguments"):
        parse_program(f"p({', '.join('1' * 20_000)}) .")


def test_limits_are_set_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.csv"
    path.write_text("1,2,3\n")
    monkeypatch.setenv("EVERMAT_MAX_COLUMNS", "2")
    with pytest.raises(WidthError, match="is 2, by default 10,000"):
        read_fact_file(path)
    monkeypatch.setenv("EVERMAT_MAX_COLUMNS", "many")
    with pytest.raises(LimitSettingError, match="many"):
        read_fact_file(path)


@pytest.mark.parametrize("what", ["dictionary", "statistics"])
def test_damaged_parquet_is_found(what: str) -> None:
    path = Path(__file__).parent / f"damaged_{what}.parquet"
    with pytest.raises(EvermatError, match=path.name):
        read_fact_file(path)
    take_parquet(path)


def take_parquet(path: Path) -> None:
    """Have a pipeline read a damaged file."""
    source = Source("s", "parquet", paths=(str(path),), facts=(FactMap("p"),))
    with pytest.raises(EvermatError, match=path.name):
        LocalIntake().take(source, source.paths, "")


def test_names_in_parquet_that_are_not_unicode(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    table = pa.table({"abcd": [1], "efgh": ["x"]})
    arrow_parquet.write_table(table, path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"abcd", b"ab\xff\xfe"))
    with pytest.raises(EvermatError, match=path.name):
        read_fact_file(path)
    take_parquet(path)


def test_a_text_of_mistakes_is_not_read_to_its_end() -> None:
    with pytest.raises(ParseError) as caught:
        parse_program('") .\n' * 30_000)
    assert len(caught.value.problems) == 10_000
    assert caught.value.problems[-1].span is not None
    assert caught.value.problems[-1].span.line == 10_000


LONG = "x" * 1_000_000


def one_long_string() -> pa.Table:
    return pa.table({"a": ["x" * 100_000_000]})


def one_string_named_often() -> pa.Table:
    indices = pa.array([0] * 1_000_000, pa.int8())
    return pa.table({"a": pa.DictionaryArray.from_arrays(indices, [LONG])})


def one_run() -> pa.Table:
    ends = pa.array([2_000_000_000], pa.int32())
    return pa.table({"a": pa.RunEndEncodedArray.from_arrays(ends, ["abc"])})


def runs_of_a_long_string() -> pa.Table:
    ends = pa.array([1_000, 2_000], pa.int32())
    return pa.table({"a": pa.RunEndEncodedArray.from_arrays(ends, [LONG, "short"])})


def views_of_one_string() -> pa.Table:
    one = pa.array([LONG], pa.string_view()).buffers()
    views = pa.py_buffer(one[1].to_pybytes() * 100_000)
    column = pa.Array.from_buffers(pa.string_view(), 100_000, [None, views, one[2]])
    return pa.table({"a": column})


def nulls() -> pa.Table:
    return pa.table({"a": pa.nulls(200_000_000)})


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file])
@pytest.mark.parametrize(
    "made",
    [
        one_long_string,
        one_string_named_often,
        one_run,
        runs_of_a_long_string,
        views_of_one_string,
        nulls,
    ],
)
def test_bombs_of_arrow(
    made: Callable[[], pa.Table], new: Callable[..., Any], tmp_path: Path
) -> None:
    table = made()
    path = tmp_path / "p.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with new(path, table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(UnpackedSizeError, match=r"p\.arrow"):
        read_fact_file(path)


def test_parquet_whose_rows_name_one_long_string(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    arrow_parquet.write_table(one_string_named_often(), path)
    with pytest.raises(UnpackedSizeError, match=r"p\.parquet"):
        read_fact_file(path)
    source = Source("s", "parquet", paths=(str(path),), facts=(FactMap("p"),))
    with pytest.raises(UnpackedSizeError, match=r"p\.parquet"):
        LocalIntake().take(source, source.paths, "")


def test_repetitive_tables_are_no_bombs(tmp_path: Path) -> None:
    words = [f"http://example.org/a/rather/long/name/{at % 50}" for at in range(10**6)]
    table = pa.table({"a": words, "b": pa.array(words).dictionary_encode()})
    for suffix, compression in (("arrow", "zstd"), ("arrow", "uncompressed")):
        path = tmp_path / f"p.{suffix}"
        arrow_feather.write_feather(table, path, compression=compression)
        assert read_fact_file(path).num_rows == 10**6
    arrow_parquet.write_table(table, tmp_path / "p.parquet")
    assert read_fact_file(tmp_path / "p.parquet").num_rows == 10**6


def test_blocks_of_arrow_that_lie_behind_the_end(tmp_path: Path) -> None:
    path = tmp_path / "p.arrow"
    arrow_feather.write_feather(pa.table({"a": [1, 2]}), path)
    data = path.read_bytes()
    # Behind the magic bytes is the schema, and behind that the first batch.
    (size,) = struct.unpack_from("<i", data, 12)
    block = struct.pack("<q", 16 + size)
    assert data.count(block) == 1
    path.write_bytes(data.replace(block, struct.pack("<q", 1 << 30)))
    with pytest.raises(EvermatError, match=r"p\.arrow"):
        read_fact_file(path)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_sizes_that_arrow_announces(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "p.arrow"
    texts = [f"{at} {'x' * 50}" for at in range(1000)]
    named = pa.array(texts).dictionary_encode()
    table = pa.table({"a": texts, "b": named, "c": range(1000)})
    arrow_feather.write_feather(table, path, compression=compression)
    announced = announced_bytes(pa.py_buffer(path.read_bytes()))
    size = sum(
        buffer.size
        for column in (*table.columns, named.dictionary)
        for buffer in pa.chunked_array([column]).combine_chunks().buffers()
        if buffer is not None
    )
    expected = 0 if compression == "uncompressed" else size
    # Bitmaps are padded, and offsets without rows take four bytes.
    assert abs(announced - expected) <= 128
