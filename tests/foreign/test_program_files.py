"""Files that programs are in, and files that programs name."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat import IRI, KnowledgeBase
from evermat.columns import (
    TERM,
    ArityMismatchError,
    constants,
    table_of_rows,
    term_table,
)
from evermat.errors import ParseError
from evermat.io.column_types import ValueFormatError
from evermat.io.files import FileMissingError, FileOptionError, data_file
from evermat.io.nemo_tables import nemo_cells, read_cell, read_cells, read_nemo_table
from evermat.io.places import MalformedFileError
from evermat.kb.inputs import RuleFileError, read_fact_file
from evermat.kb.program_files import (
    SkippedRowsWarning,
    load_sources,
    read_program,
    recognised,
    write_sinks,
)
from evermat.lang.syntax import DataSource, Program
from evermat.values import (
    XSD,
    BlankNode,
    Constant,
    Kind,
    LangString,
    TypedLiteral,
    Value,
    constant,
    literal,
)

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.kb.program_files import Syntax

RULE = "p(?x) :- q(?x) ."


def rows(table: pa.Table) -> list[tuple[Value, ...]]:
    columns = [constants(column) for column in term_table(table).columns]
    return [tuple(term.value for term in row) for row in zip(*columns, strict=True)]


# -------------------------------------------------------------------- programs


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.dl", RULE, "evermat"),
        ("a.dl", "% my rules\n.decl p(x:number)", "souffle"),
        ("a.dl", '@import p "p.csv" .', "evermat"),
        ("a.dl", '@export p "p.csv" .', "evermat"),
        ("<rules>", "@import p :- csv{} .", "nemo"),
        ("<rules>", '@source p[2] : load-csv("a") .', "nemo"),
        ("a.rls", RULE, "nemo"),
        ("a.dlog.gz", "P(X) :- Q(X)", "dlog"),
        ("a.txt", "PREFIX a: <http://a/>\n", "dlog"),
        ("a.txt", "PREFIX : <b>\nRULE { ?x a :B } WHERE {}", "sparql-rl"),
        ("a.txt", "rule <http://a/rule>\n{ ?x a <b> } where {}", "sparql-rl"),
        ("a.srl.gz", "PREFIX : <http://a/>", "sparql-rl"),
    ],
)
def test_languages_are_recognised(name: str, text: str, expected: str) -> None:
    assert recognised(name, text) == expected


def test_programs_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "rules.dlog.gz"
    path.write_bytes(gzip.compress(b"P(X) :- Q(X)"))
    assert len(read_program(path).rules) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.dl", ".decl p(x:number)\np(1)."),
        ("a.rls", "p(1) ."),
        ("a.dlog", "p(1)"),
        ("a.dl", "p(1) ."),
        ("a.dl.gz", "p(1) ."),
    ],
)
def test_byte_order_marks_do_not_count(tmp_path: Path, name: str, text: str) -> None:
    data = b"\xef\xbb\xbf" + text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    assert read_program(path).facts == read_program("p(1) .").facts


@pytest.mark.parametrize("name", ["a.dl", "a.rls", "a.dlog", "a.dl.gz"])
def test_programs_in_other_encodings_are_refused(tmp_path: Path, name: str) -> None:
    data = b"p(1) .\n% \xe9t\xe9\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    with pytest.raises(RuleFileError, match="is not UTF-8 text"):
        KnowledgeBase(path)


def test_our_own_language_is_read_too() -> None:
    assert str(read_program(RULE, "evermat")).strip() == RULE


# --------------------------------------------------------------------- sources


def test_facts_of_souffle_lie_beside_the_program_or_in_facts(tmp_path: Path) -> None:
    program = read_program(
        ".decl p(x:number, y:symbol)\n.input p\n.decl q(x:float)\n.input q", "souffle"
    )
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "p.facts").write_text('1\t"a b"\n-2\t3\n')
    (tmp_path / "q.facts").write_text("1.5")
    tables = load_sources(program, tmp_path)
    assert rows(tables["p"]) == [(1, '"a b"'), (-2, "3")]
    assert rows(tables["q"]) == [(1.5,)]


def test_files_lie_beside_the_file_that_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.dl").write_text('@include "sub/more.dl" . @import p "p.csv" .')
    (tmp_path / "sub" / "more.dl").write_text('@import q "p.csv" . @import r "r.csv" .')
    (tmp_path / "p.csv").write_text("1\n")
    (tmp_path / "sub" / "p.csv").write_text("2\n")
    (tmp_path / "r.csv").write_text("3\n")
    tables = load_sources(read_program(tmp_path / "main.dl"), tmp_path)
    assert {name: rows(table) for name, table in tables.items()} == {
        "p": [(1,)],
        "q": [(2,)],
        "r": [(3,)],
    }


def test_columns_of_souffle_are_typed(tmp_path: Path) -> None:
    program = read_program(".decl p(x:number)\n.input p", "souffle")
    (tmp_path / "p.facts").write_text("1\ntwo\n")
    with pytest.raises(ValueFormatError, match="`two` is not an integer"):
        load_sources(program, tmp_path)


def test_rows_of_souffle_are_complete(tmp_path: Path) -> None:
    program = read_program(".decl p(x:number, y:number)\n.input p", "souffle")
    (tmp_path / "p.facts").write_text("1\t2\n3\n")
    with pytest.raises(MalformedFileError):
        load_sources(program, tmp_path)


def test_a_relation_without_columns(tmp_path: Path) -> None:
    program = read_program(".decl p()\n.input p", "souffle")
    (tmp_path / "p.facts").write_text("()\n")
    assert load_sources(program, tmp_path)["p"].num_rows == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    program = read_program(".decl p(x:number)\n.input p", "souffle")
    with pytest.raises(FileMissingError, match=r"p\.facts") as raised:
        load_sources(program, tmp_path)
    assert "2 | .input p" in str(raised.value)


def test_compression_may_be_said_or_seen(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"1,x\n"))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"2,y\n"))
    program = read_program(
        '@import p :- csv{resource = "a.csv", compression = "gzip"} .'
        '@import p :- csv{resource = "b.csv.gz"} .',
        "nemo",
    )
    tables = load_sources(program, tmp_path)
    assert rows(tables["p"]) == [(1, IRI("x")), (2, IRI("y"))]


def test_rows_that_do_not_fit_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2.5,x\n1\n2,x,y\n3,4,5,6\n3,4,z\n")
    program = read_program(
        '@import p :- csv{resource = "a.csv", format = (int, double, skip)} .', "nemo"
    )
    with pytest.warns(SkippedRowsWarning, match=r"3 rows were left out of `a\.csv`"):
        tables = load_sources(program, tmp_path)
    assert rows(tables["p"]) == [(1, 2.5), (3, 4.0)]


def test_a_header_and_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name\nx\ny\nz\n")
    text = '@import p :- csv{resource = "a.csv", ignore_headers = true, limit = 2} .'
    tables = load_sources(read_program(text, "nemo"), tmp_path)
    assert rows(tables["p"]) == [(IRI("x"),), (IRI("y"),)]


def test_imports_of_our_own_language_follow_declarations(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name,age\n007,7\n")
    (tmp_path / "q.txt").write_text("a;1\n")
    program = read_program(
        "@declare p(name: string, age: integer) ."
        '@import p "p.csv" .'
        '@import q "q.txt" {format = "csv", delimiter = ";", types = "iri, string"} .',
        "evermat",
    )
    tables = load_sources(program, tmp_path)
    assert rows(tables["p"]) == [("007", 7)]
    assert rows(tables["q"]) == [(IRI("a"), "1")]


def test_files_of_one_predicate_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("")
    (tmp_path / "two.csv").write_text("1,2\n")
    (tmp_path / "three.csv").write_text("1,2,3\n")
    for first, second in (("none", "two"), ("two", "none")):
        text = f'@import p "{first}.csv" . @import p "{second}.csv" .'
        assert rows(load_sources(read_program(text), tmp_path)["p"]) == [(1, 2)]
    program = read_program('@import p "two.csv" . @import p "three.csv" .')
    with pytest.raises(ArityMismatchError, match="of `p` has 3 columns, expected 2"):
        load_sources(program, tmp_path)


@pytest.mark.parametrize("option", ["header", "quoting"])
def test_an_option_is_true_or_false(tmp_path: Path, option: str) -> None:
    (tmp_path / "p.csv").write_text("a,b\n")
    program = read_program(f'@import p "p.csv" {{{option} = "yes"}} .')
    with pytest.raises(FileOptionError, match=f"`{option}` is neither `true` nor"):
        load_sources(program, tmp_path)
    program = read_program('@export p "q.csv" {header = "yes"} .')
    with pytest.raises(FileOptionError, match="`header` is neither `true` nor"):
        write_sinks(program, lambda _: table_of_rows([], 2), tmp_path)


@pytest.mark.parametrize(
    ("settings", "data", "expected"),
    [
        ("ignore_headers = true", "a,b", []),
        ("limit = 1", '"a\nb",c\nd,e', [("a\nb", IRI("c"))]),
    ],
)
def test_first_rows_of_nemo(
    tmp_path: Path, settings: str, data: str, expected: list[tuple[Value, ...]]
) -> None:
    (tmp_path / "p.csv").write_text(data)
    text = f'@import p :- csv{{resource = "p.csv", {settings}}} .'
    assert rows(load_sources(read_program(text), tmp_path)["p"]) == expected


def test_settings_of_nemo_that_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a,b\n")
    with pytest.raises(ParseError, match="`limit` is a number of rows"):
        read_program('@import p :- csv{resource = "p.csv", limit = "all"} .')
    program = read_program('@import p :- dsv{resource = "p.csv", delimiter = "::"} .')
    with pytest.raises(FileOptionError, match="'::' cannot be the delimiter"):
        load_sources(program, tmp_path)


@pytest.mark.parametrize(
    ("file", "options", "expected"),
    [
        ("p.csv", ' {header = "true"}', ("7", 8)),
        ("p.csv", ' {header = "true", columns = "n, code"}', ("8", 7)),
        ("p.parquet", "", ("7", 8)),
    ],
)
def test_declared_types_go_by_place_where_columns_have_no_declared_names(
    tmp_path: Path, file: str, options: str, expected: tuple[Value, ...]
) -> None:
    (tmp_path / "p.csv").write_text("code,n\n7,8\n")
    table = pa.table({"code": ["7"], "n": [8]})
    arrow_parquet.write_table(table, tmp_path / "p.parquet")
    text = f'@declare p(string, integer) . @import p "{file}"{options} .'
    assert rows(load_sources(read_program(text), tmp_path)["p"]) == [expected]


@pytest.mark.parametrize("header", [True, False])
def test_declared_types_hold_below_a_header(tmp_path: Path, *, header: bool) -> None:
    (tmp_path / "p.csv").write_text("code,n\n7,8\n" if header else "7,8\n")
    catalogue = KnowledgeBase("@declare p(string, any) .").catalogue
    table = read_fact_file(tmp_path / "p.csv", catalogue.get("p"), header=header)
    assert rows(table) == [("7", 8)]


def test_facts_without_arguments_are_imported(tmp_path: Path) -> None:
    (tmp_path / "done.csv").write_text("()\n")
    program = read_program('@declare done . @import done "done.csv" .')
    table = load_sources(program, tmp_path)["done"]
    assert (table.num_columns, table.num_rows) == (0, 1)


def test_an_unknown_option_of_our_own_export(tmp_path: Path) -> None:
    program = read_program('@export p "p.csv" {colour = "red"} .', "evermat")
    with pytest.raises(FileOptionError, match="no option `colour`"):
        write_sinks(program, facts, tmp_path)


def test_an_unknown_option_of_our_own_import(tmp_path: Path) -> None:
    source = DataSource("p", "p.csv", (("colour", "red"),))
    with pytest.raises(FileOptionError, match="no option `colour`"):
        load_sources(Program(sources=(source,)), tmp_path)


def test_rdf_needs_a_reader(tmp_path: Path) -> None:
    program = read_program('@import p :- turtle{resource = "a.ttl"} .', "nemo")
    with pytest.raises(FileOptionError, match=r"cannot read RDF from `a\.ttl`"):
        load_sources(program, tmp_path)


def test_rdf_of_nemo_programs(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text('<http://a> <http://b> "c" .\n')
    path = tmp_path / "program.rls"
    path.write_text(
        '@import p :- ntriples{resource = "a.nt"} . out(?o) :- p(?s, ?p, ?o) .'
    )
    assert KnowledgeBase(path).facts("out").to_list() == [("c",)]


# ----------------------------------------------------------------------- sinks


def facts(_: str) -> pa.Table:
    values = [(IRI("a"), "a b"), (IRI("1x y"), 'say "hi"'), (IRI("c"), 7)]
    return table_of_rows(values, 2)


def test_sinks_of_nemo_read_back(tmp_path: Path) -> None:
    program = read_program(
        '@export p :- csv{} .@export p :- dsv{resource = "sub/p.x", delimiter = ";"} .',
        "nemo",
    )
    written = write_sinks(program, facts, tmp_path)
    assert written == [tmp_path / "p.csv", tmp_path / "sub" / "p.x"]
    assert written[0].read_text() == 'a,"""a b"""\n<1x y>,"""say ""hi"""""\nc,7\n'
    back = read_nemo_table(
        data_file(written[1], format="csv"),
        delimiter=";",
        quoting=True,
        header=False,
        types=None,
    )
    assert rows(back.table) == rows(facts("p"))


def test_sinks_of_souffle(tmp_path: Path) -> None:
    program = read_program(
        ".decl p(x:symbol, y:symbol)\n.output p\n"
        '.output p(filename="h.csv", delimiter=";", headers=true)\n'
        ".output p(IO=stdout)\n.printsize p",
        "souffle",
    )
    table = table_of_rows([("a", "b"), ("c", "d")], 2)
    stream = io.StringIO()
    written = write_sinks(program, lambda _: table, tmp_path, stream=stream)
    assert [path.read_text() for path in written] == ["a\tb\nc\td\n", "x;y\na;b\nc;d\n"]
    line = "=" * 15
    heading = f"{'-' * 15}\np\n{line}\n"
    assert stream.getvalue() == f"{heading}a\tb\nc\td\n{line}\np\t2\n"


def test_compressed_sinks(tmp_path: Path) -> None:
    texts = [
        (".decl p(x:symbol, y:symbol)\n.output p(compress=true)", "souffle"),
        ('@export p :- csv{resource = "q.csv", compression = "gzip"} .', "nemo"),
    ]
    table = table_of_rows([("a", "b")], 2)
    contents = []
    for text, syntax in texts:
        program = read_program(text, cast("Syntax", syntax))
        (path,) = write_sinks(program, lambda _: table, tmp_path)
        contents.append((path.name, gzip.decompress(path.read_bytes()).decode()))
    assert contents == [
        ("p.csv.gz", "a\tb\n"),
        ("q.csv.gz", '"""a""","""b"""\n'),
    ]


def test_sinks_of_our_own_language(tmp_path: Path) -> None:
    program = read_program('@export p "p.tsv" .', "evermat")
    table = table_of_rows([("a", 1)], 2)
    (path,) = write_sinks(program, lambda _: table, tmp_path)
    assert path.read_text() == "a\t1\n"


# ----------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("alice", IRI("alice")),
        ("<alice>", IRI("alice")),
        ("<a b>", IRI("a b")),
        ("http://a/b#c", IRI("http://a/b#c")),
        ("+", IRI("+")),
        ("-.", IRI("-.")),
        ("Foo@en", IRI("Foo@en")),
        ("42", 42),
        (" 42 ", 42),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("12345678901234567890", 12345678901234567890),
        ("", ""),
        ("two words", "two words"),
        ("a>b", "a>b"),
        ('"text"', "text"),
        ('"with "quotes""', 'with "quotes"'),
        ('"', IRI('"')),
        ('"chat"@fr', LangString("chat", "fr")),
        (f'"5"^^<{XSD}integer>', 5),
        ('"9223372036854775808"^^<xsd:integer>', 9223372036854775808),
        ('"x"^^<http://t>', TypedLiteral("x", "http://t")),
        ("_:b1", BlankNode("b1")),
    ],
)
def test_cells(cell: str, expected: Value) -> None:
    assert read_cell(cell) == constant(expected)
    column = read_cells(pa.array([cell, "other"]))
    assert constants(column) == [constant(expected), constant(IRI("other"))]


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
TERMS = st.one_of(
    TEXTS.map(lambda text: Constant(Kind.STRING, text)),
    st.from_regex(r'[a-z0-9:/#+\-_."@]{1,8}', fullmatch=True).map(
        lambda text: Constant(Kind.IRI, text)
    ),
    st.integers().map(constant),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(constant),
    st.booleans().map(constant),
    st.floats(allow_nan=False).map(constant),
    TEXTS.map(lambda text: constant(LangString(text, "en-gb"))),
    TEXTS.map(lambda text: literal(text, "http://example.org/type")),
)


@given(st.lists(TERMS))
def test_cells_read_back(terms: list[Constant]) -> None:
    column = pa.array([{"kind": t.kind, "text": t.text} for t in terms], TERM)
    assert constants(read_cells(nemo_cells(column))) == terms
