"""Programs and files of all sorts, and what time, accidents and malice make of them."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.feather as arrow_feather
import pyarrow.parquet as arrow_parquet
import pyoxigraph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROJECT = Path(__file__).parents[1]
DATA = (PROJECT / os.environ.get("EVERMAT_TEST_DATA", "../shared/data")).resolve()
LARGEST = 4_000
"""Bytes of a file that is mutated: small ones are quicker, and as likely to break."""

_LANGUAGES = {
    ".dl": "evermat",
    ".rls": "nemo",
    ".nemo": "nemo",
    ".dlog": "dlog",
    ".sparql-rl": "sparql-rl",
    ".souffle": "souffle",
}


@dataclass(frozen=True, slots=True)
class Input:
    """Something to be read: `form` is the language of a program, or a file's suffix."""

    form: str
    data: bytes


# ----------------------------------------------------------------------- whole inputs


@cache
def programs() -> list[Input]:
    """Real programs, in all languages."""
    found = [*_files(PROJECT / "tests", _LANGUAGES), *_files(DATA, _LANGUAGES)]
    found += _files(PROJECT / "examples", _LANGUAGES)
    is_souffle = re.compile(rb"^\s*\.decl", re.MULTILINE).search
    return [
        Input("souffle" if is_souffle(data) else _LANGUAGES[path.suffix], data)
        for path, data in found
    ]


@cache
def files() -> list[Input]:
    """Files of facts, ontologies, configurations and updates."""
    return [*_tables(), *_rdf(), *_settings()]


def _files(folder: Path, suffixes: Iterable[str]) -> list[tuple[Path, bytes]]:
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in suffixes]
    whole = [(path, path.read_bytes()) for path in paths if path.is_file()]
    return [(path, data) for path, data in whole if 0 < len(data) <= LARGEST]


def _tables() -> list[Input]:
    table = pa.table({
        "a": [f"text {at}" for at in range(20)],
        "b": list(range(20)),
        "c": [at / 3 for at in range(20)],
        "d": [at % 2 == 0 for at in range(20)],
    })  # fmt: skip
    named = table.set_column(0, "a", table["a"].dictionary_encode())
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    found = [
        Input(".csv", b'"a, b",1,2.5\n"say ""hi""",2,1e3\nx,3,-1\n' * 3),
        Input(".tsv", b"name\tnumber\nx\t1\ny\t007\n" * 3),
        Input(".facts", b"a\tb\nb\tc\n" * 5),
        Input(".jsonl", b'{"a": "x", "b": 1}\n{"a": "\\u00e9", "b": 2.5}\n' * 3),
        Input(".jsonl", b'{"a": 9223372036854775808, "t": "2024-01-31"}\n' * 3),
        Input(".arrow", stream.getvalue()),
    ]
    for each in (table, named):
        for compression in ("uncompressed", "lz4", "zstd"):
            packed = io.BytesIO()
            arrow_feather.write_feather(each, packed, compression=compression)
            found.append(Input(".arrow", packed.getvalue()))
        for compression in ("none", "snappy", "zstd", "gzip"):
            packed = io.BytesIO()
            arrow_parquet.write_table(each, packed, compression=compression)
            found.append(Input(".parquet", packed.getvalue()))
    return found


_OWN_RDF = b"""@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:A rdfs:subClassOf [ owl:intersectionOf ( :B [ owl:unionOf ( :C :D ) ] ) ] .
[ owl:onProperty :p ; owl:someValuesFrom [ owl:intersectionOf ( :A :B ) ] ]
  rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :D ] .
:p a owl:FunctionalProperty ; owl:propertyChainAxiom ( :q [ owl:inverseOf :r ] ) .
:A owl:hasKey ( :p :q ) ; owl:equivalentClass :E . :x :p "a"@en , 1 , 2.5 , true .
"""
_ENTITIES = b"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/"><!ENTITY f '&e;f/'>]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="&f;a"><e:p rdf:resource="&e;b"/><!-- <e:p> -->
<e:q rdf:parseType="Collection"><e:C/><e:C/></e:q></rdf:Description></rdf:RDF>
"""


def _rdf() -> list[Input]:
    syntaxes = {
        ".nt": pyoxigraph.RdfFormat.N_TRIPLES,
        ".nq": pyoxigraph.RdfFormat.N_QUADS,
        ".ttl": pyoxigraph.RdfFormat.TURTLE,
        ".trig": pyoxigraph.RdfFormat.TRIG,
        ".rdf": pyoxigraph.RdfFormat.RDF_XML,
    }
    triples = [quad.triple for quad in pyoxigraph.parse(_OWN_RDF, syntaxes[".ttl"])]
    found = [Input(".ttl", _OWN_RDF), Input(".rdf", _ENTITIES)]
    for suffix, syntax in syntaxes.items():
        data = pyoxigraph.serialize(triples, format=syntax) or b""
        found += [Input(suffix, data)] * 3
    found += [
        Input(path.suffix, data)
        for path, data in _files(DATA, [".ttl", ".nt", ".rdf", ".owl"])[::7]
    ]
    return found


_CONFIGURATION = b"""name = "orders"
[program]
text = "reach(?x, ?y) :- edge(?x, ?y) ."
[[source]]
path = "edge.csv"
predicate = "edge"
max_rejected = "1%"
columns = { a = "string", b = { type = "integer", minimum = 1, pattern = "[0-9]+" } }
[[source]]
name = "database"
format = "jdbc"
url = "jdbc:postgresql://host/db"
table = "t"
password_variable = "PASSWORD"
[[source.facts]]
predicate = "p"
arguments = [{ column = "a" }, { iri = "http://e/{b}" }, { value = 7 }]
[engine]
name = "embedded"
[state]
path = "state"
[[output]]
predicates = ["reach", "p"]
path = "out/{predicate}"
[stream]
format = "json"
path = "events"
"""
_UPDATE = b"""title = "Monday"
algorithm = "dred-c"
[delete]
edge = [["a", "b"], [1, 2.5], [true, 2024-01-31]]
[insert]
edge = "new-edges.csv"
[rules]
add = "reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) ."
remove = ["p(?x) :- q(?x) ."]
remove_file = "old.dl"
"""


def _settings() -> list[Input]:
    return [Input("config.toml", _CONFIGURATION), Input("update.toml", _UPDATE)] * 4


# ------------------------------------------------------------------------- mutations

_TOKEN = re.compile(rb"[A-Za-z_]\w*|\d+|\s+|.", re.DOTALL)
_ODD = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\t", b'"', b"'", b'"""', b"\\",
    b"\\u00", b"\xc3\xa9", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"<", b"<<", b">", b"&",
    b"&a;", b"%", b"#", b"//", b"/*", b"@", b"^^", b"_:", b"_", b"?", b"?_1", b"~",
    b"99999999999999999999", b"-9223372036854775808", b"1e999", b"NaN", b"1e-400",
    b"0x", b"../../etc/passwd", b"/dev/zero", b".", b"..", b":-", b"=", b"!=", b"[]",
    b"{}", b"()", b"[[]]", b"not ", b"count(", b"\xcc\x81" * 50,
    b'@include "x.dl" .\n',
]  # fmt: skip
_NESTED = [
    (b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"-", b""), (b"not ", b""), (b"!", b""),
    (b"f(", b")"), (b"<a>", b"</a>"), (b"<<( <u:a> <u:b> ", b" )>>"), (b"a.", b""),
    (b'{"a":', b"}"), (b"a={", b"}"), (b"1+", b""), (b"[ <u:p> ", b" ]"),
]  # fmt: skip


def _place(draw: random.Random, data: bytes) -> int:
    return draw.randrange(len(data) + 1)


def _piece(draw: random.Random, data: bytes) -> bytes:
    start = _place(draw, data)
    return data[start : start + draw.choice([1, 4, 20, 100, 1000])]


def _flip(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b" ")
    for _ in range(draw.choice([1, 1, 2, 8])):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _truncate(draw: random.Random, data: bytes) -> bytes:
    return (
        data[: _place(draw, data)]
        if draw.random() < 0.7
        else data[_place(draw, data) :]
    )


def _remove(draw: random.Random, data: bytes) -> bytes:
    start = _place(draw, data)
    return data[:start] + data[start + len(_piece(draw, data)) :]


def _duplicate(draw: random.Random, data: bytes) -> bytes:
    piece, start = _piece(draw, data), _place(draw, data)
    return data[:start] + piece * draw.choice([1, 1, 2, 10, 300]) + data[start:]


def _insert(draw: random.Random, data: bytes) -> bytes:
    start = _place(draw, data)
    return data[:start] + draw.choice(_ODD) * draw.choice([1, 1, 3]) + data[start:]


def _swap(draw: random.Random, data: bytes) -> bytes:
    tokens = _TOKEN.findall(data)
    if len(tokens) > 1:
        for _ in range(draw.choice([1, 2, 5])):
            one, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
            tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


def _replace_token(draw: random.Random, data: bytes) -> bytes:
    tokens = _TOKEN.findall(data)
    if tokens:
        tokens[draw.randrange(len(tokens))] = draw.choice([*_ODD, *tokens[:50]])
    return b"".join(tokens)


def _nest(draw: random.Random, data: bytes) -> bytes:
    start, depth = _place(draw, data), draw.choice([2, 30, 150, 1200, 6000])
    end = min(len(data), start + draw.choice([0, 5, 50]))
    opening, closing = draw.choice(_NESTED)
    return b"".join(
        [data[:start], opening * depth, data[start:end], closing * depth, data[end:]]
    )


def _number(draw: random.Random, data: bytes) -> bytes:
    """Another number of four or eight bytes, as binary formats have them."""
    size = draw.choice([4, 8])
    value = draw.choice([0, 1, 0xFF, 1 << 20, (1 << 31) - 1, (1 << 32) - 1])
    start = _place(draw, data)
    return data[:start] + value.to_bytes(size, "little") + data[start + size :]


_EVERYWHERE = (_flip, _truncate, _remove, _duplicate, _insert)
_OF_TEXTS = (*_EVERYWHERE, _swap, _replace_token, _nest)
_OF_BINARIES = (*_EVERYWHERE, _number, _number, _flip, _flip)
_BINARY = frozenset({".parquet", ".arrow"})


def _mutated(draw: random.Random, given: Input, others: list[Input]) -> bytes:
    data = given.data
    ways: tuple[Callable[[random.Random, bytes], bytes], ...]
    ways = _OF_BINARIES if given.form in _BINARY else _OF_TEXTS
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        if draw.random() < 0.05:
            start = _place(draw, data)
            data = data[:start] + _piece(draw, draw.choice(others).data) + data[start:]
        else:
            data = draw.choice(ways)(draw, data)
    return data[: 60 * LARGEST]


def mutated_program(number: int, seed: int) -> Input:
    """The mutated program of a number."""
    draw = random.Random(f"program {seed} {number}")  # noqa: S311  no secrets
    given = draw.choice(programs())
    form = given.form if draw.random() < 0.9 else draw.choice([*_LANGUAGES.values()])
    return Input(form, _mutated(draw, given, programs()))


def mutated_file(number: int, seed: int) -> Input:
    """The mutated file of a number; one in eight is compressed, then mutated again."""
    draw = random.Random(f"file {seed} {number}")  # noqa: S311  no secrets
    given = draw.choice(files())
    form = given.form if draw.random() < 0.95 else draw.choice(files()).form
    data = _mutated(draw, given, files())
    if draw.random() < 0.12 and not form.endswith(".toml"):
        suffix = draw.choice([".gz", ".zst", ".bz2"])
        data, form = _packed(data, suffix), form + suffix
        if draw.random() < 0.5:
            data = draw.choice(_OF_BINARIES)(draw, data)
    return Input(form, data)


def _packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    codec = {".zst": "zstd", ".bz2": "bz2"}[suffix]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())
