"""Reading RDF: every syntax, blank nodes, and the texts of errors."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat import IRI, KnowledgeBase
from evermat.columns import TERM, term_texts
from evermat.io import DamagedFileError, NotUnicodeError, UnknownFormatError, data_file
from evermat.lang.parser import parse_program
from evermat.rdf import RdfSyntaxError, rdf_batches, read_rdf
from evermat.values import TypedLiteral, language_string, literal, term_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evermat.errors import EvermatError

    Write = Callable[[str, bytes], Path]

XSD = "http://www.w3.org/2001/XMLSchema#"


def triples(table: pa.Table) -> set[tuple[str, ...]]:
    columns = [term_texts(column).to_pylist() for column in table.columns]
    return set(zip(*columns, strict=True))


SAME = {
    ("<http://x/a>", "<http://x/p>", "<http://x/b>"),
    ("<http://x/a>", "<http://x/p>", '"é \\"q\\"\\n"'),
    ("<http://x/a>", "<http://x/p>", '"chat"@fr'),
    ("<http://x/a>", "<http://x/p>", "7"),
    ("<http://x/a>", "<http://x/p>", '"x"^^<http://x/d>'),
}
NTRIPLES = (
    b"# a comment\n"
    b"<http://x/a> <http://x/p> <http://x/b> .\n\r\n"
    b'<http://x/a>\t<http://x/p>  "\\u00e9 \\"q\\"\\n" . # another\r\n'
    b'<http://x/a> <http://x/p> "chat"@FR .\n'
    b'<http://x/a> <http://x/p> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    b'<http://x/a> <http://x/p> "x"^^<http://x/d> .'
)
TURTLE = (
    b"@prefix : <http://x/> .\n"
    b':a :p :b, "\xc3\xa9 \\"q\\"\\n", "chat"@fr, 007, "x"^^:d .\n'
)
RDFXML = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">
  <rdf:Description rdf:about="http://x/a">
    <p rdf:resource="http://x/b"/>
    <p>\xc3\xa9 "q"&#10;</p>
    <p xml:lang="fr">chat</p>
    <p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">7</p>
    <p rdf:datatype="http://x/d">x</p>
  </rdf:Description>
</rdf:RDF>"""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.nt", NTRIPLES),
        ("t.nt.gz", gzip.compress(NTRIPLES, mtime=0)),
        ("t.nq", NTRIPLES.replace(b'"chat"@FR .', b'"chat"@FR <http://x/g> .')),
        ("t.ttl", TURTLE),
        ("t.ttl.gz", gzip.compress(TURTLE, mtime=0)),
        ("t.trig", TURTLE.replace(b":a :p", b":g { :a :p").replace(b":d .", b":d }")),
        ("t.rdf", RDFXML),
        ("t.owl", RDFXML),
    ],
)
def test_every_syntax_gives_the_same_triples(
    write: Write, name: str, data: bytes
) -> None:
    table = read_rdf(write(name, data))
    assert table.column_names == ["s", "p", "o"]
    assert table.schema.types == [TERM] * 3
    assert triples(table) == SAME


def test_formats_can_be_named(write: Write) -> None:
    path = write("data.txt", TURTLE)
    assert triples(read_rdf(path, "ttl")) == SAME
    assert triples(read_rdf(data_file(path, format="ttl"))) == SAME


@pytest.mark.parametrize("name", ["t.nt", "t.ttl", "t.nq", "t.nt.gz"])
def test_empty_files_have_no_triples(write: Write, name: str) -> None:
    data = gzip.compress(b"") if name.endswith("gz") else b""
    table = read_rdf(write(name, data))
    assert table.shape == (0, 3)
    assert table.schema.types == [TERM] * 3


@pytest.mark.parametrize("suffix", ["nt", "nq", "ttl", "trig", "nt.gz", "ttl.gz"])
@pytest.mark.parametrize("text", ["<a:s> <a:p> <a:o> .\n", "# nothing\n", ""])
def test_byte_order_marks_do_not_count(write: Write, suffix: str, text: str) -> None:
    data = b"\xef\xbb\xbf" + text.encode()
    path = write(f"a.{suffix}", gzip.compress(data) if "gz" in suffix else data)
    assert read_rdf(path).num_rows == text.count("<a:s>")


def test_relative_iris_need_a_base(write: Write) -> None:
    path = write("t.ttl", b"<a> <p> <#b> .")
    assert triples(read_rdf(path, base="http://x/")) == {
        ("<http://x/a>", "<http://x/p>", "<http://x/#b>")
    }
    with pytest.raises(RdfSyntaxError, match="say `base=…`"):
        read_rdf(path)


def blank_nodes(table: pa.Table) -> set[str]:
    return {text for row in triples(table) for text in row if text.startswith("_:")}


BLANKS = {
    "t.nt": b"_:a <u:p> _:b .\n_:b <u:p> _:a .\n",
    "t.ttl": b"_:a <u:p> [ <u:p> _:a ] .",
}


@pytest.mark.parametrize("name", BLANKS)
def test_blank_nodes_of_two_files_are_apart(write: Write, name: str) -> None:
    one = blank_nodes(read_rdf(write("one-" + name, BLANKS[name])))
    two = blank_nodes(read_rdf(write("two-" + name, BLANKS[name])))
    assert len(one) == len(two) == 2
    assert not one & two


@pytest.mark.parametrize("name", BLANKS)
def test_blank_nodes_of_a_file_are_the_same_each_time(write: Write, name: str) -> None:
    path = write(name, BLANKS[name])
    assert triples(read_rdf(path)) == triples(read_rdf(path))
    named = blank_nodes(read_rdf(path, blank_scope="here"))
    assert named == blank_nodes(read_rdf(path, blank_scope="here"))
    assert not named & blank_nodes(read_rdf(path))


def test_blank_nodes_can_keep_their_labels(write: Write) -> None:
    path = write("t.nt", BLANKS["t.nt"])
    assert blank_nodes(read_rdf(path, blank_scope=False)) == {"_:a", "_:b"}


@pytest.mark.parametrize("label", ["a\u00b7b", "e\u0301", "a\ufeffb", "a\u200db"])
def test_labels_have_all_signs_of_the_standard(write: Write, label: str) -> None:
    path = write("a.nt", f"_:{label} <http://x/p> _:{label} .\n".encode())
    found = triples(read_rdf(path, blank_scope=False))
    assert found == {(f"_:{label}", "<http://x/p>", f"_:{label}")}
    assert str(parse_program(f"p(_:{label}) .")) == f"p(_:{label}) .\n"


def test_blank_nodes_keep_apart_from_iris_that_look_alike(write: Write) -> None:
    path = write("t.nt", b'_:a <u:p> "a" .\n<u:a> <u:p> "_:a" .\n')
    objects = {row[2] for row in triples(read_rdf(path))}
    assert objects == {'"a"', '"_:a"'}


ERRORS: dict[str, tuple[str, bytes, type[EvermatError], str]] = {
    "N-Triples": (
        "t.nt",
        b'<u:a> <u:p> "x" .\n\n<u:a> <u p> "x" .\n',
        RdfSyntaxError,
        """\
RdfSyntaxError [EM723]: invalid IRI code point ' '
 --> t.nt:3:7
  |
3 | <u:a> <u p> "x" .
  |       ^^^^^
  |""",
    ),
    "bare number": (
        "t.nt",
        b"<u:a> <u:p> 7 .\n",
        RdfSyntaxError,
        """\
RdfSyntaxError [EM723]: the object of a triple must be an IRI, a blank node or a \
literal
 --> t.nt:1:13
  |
1 | <u:a> <u:p> 7 .
  |             ^
  |""",
    ),
    "Turtle": (
        "t.ttl",
        b"@prefix : <http://x/> .\n:a :b ex:c .\n",
        RdfSyntaxError,
        """\
RdfSyntaxError [EM723]: the prefix ex: has not been declared
 --> t.ttl:2:7
  |
2 | :a :b ex:c .
  |       ^^^^
  |""",
    ),
    "RDF/XML": (
        "t.rdf",
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n</x>',
        RdfSyntaxError,
        """\
RdfSyntaxError [EM723]: ill-formed document: expected `</rdf:RDF>`, but `</x>` was \
found
 --> t.rdf:2:3
  |
2 | </x>
  |   ^
  |""",
    ),
    "not UTF-8": (
        "t.nt",
        b'<u:a> <u:p> "x" .\n<u:a> <u:p> "\xff" .\n',
        NotUnicodeError,
        """\
NotUnicodeError [EM715]: `t.nt` is not in UTF-8
 --> t.nt:2:14
  |
2 | <u:a> <u:p> "\N{REPLACEMENT CHARACTER}" .
  |              ^ byte 0xff
  |
  = help: convert it to UTF-8 first""",
    ),
    "bad gzip": (
        "t.ttl.gz",
        b"plain text",
        DamagedFileError,
        """\
DamagedFileError [EM713]: `t.ttl.gz` is not a readable gzip file: \
zlib inflate failed: incorrect header check
 = help: it may have been cut short, or have the wrong suffix""",
    ),
    "a table": (
        "t.csv",
        b"",
        UnknownFormatError,
        """\
UnknownFormatError [EM712]: cannot tell the format of `t.csv`
 = reason: known suffixes are .nt .nq .ttl .trig .rdf .owl .jsonld .n3, \
and .gz .zst .bz2 after them
 = help: rename the file, or say `format=…`""",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_where_what_and_how(write: Write, name: str) -> None:
    file_name, data, error, text = ERRORS[name]
    path = write(file_name, data)
    with pytest.raises(error) as caught:
        read_rdf(path)
    assert str(caught.value) == text


def test_xml_may_be_in_other_encodings_and_quote_entities_either_way(
    write: Write,
) -> None:
    text = """<?xml version='1.0' encoding='ISO-8859-1'?>
<!DOCTYPE rdf:RDF [ <!ENTITY x 'http://x/'> <!ENTITY y "http://y/"> ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">
  <rdf:Description rdf:about="&x;a"><p>\xe9t\xe9, it's</p></rdf:Description>
  <rdf:Description rdf:about="&y;a"><p>[]&gt;</p></rdf:Description>
</rdf:RDF>"""
    table = read_rdf(write("t.rdf", text.encode("latin-1")))
    assert triples(table) == {
        ("<http://x/a>", "<http://x/p>", '"\xe9t\xe9, it\'s"'),
        ("<http://y/a>", "<http://x/p>", '"[]>"'),
    }
    unknown = text.replace("ISO-8859-1", "klingon").encode("latin-1")
    with pytest.raises(RdfSyntaxError, match="Only UTF-8 is supported"):
        read_rdf(write("t.rdf", unknown))


def test_triples_as_terms_are_refused(write: Write) -> None:
    path = write("t.ttl", b"<u:a> <u:p> <<( <u:a> <u:p> <u:b> )>> .")
    with pytest.raises(RdfSyntaxError, match="triples as terms are not supported"):
        read_rdf(path)


LITERALS = st.one_of(
    st.builds(pyoxigraph.Literal, st.text(st.characters(exclude_categories=["Cs"]))),
    st.builds(
        lambda text, datatype: pyoxigraph.Literal(
            text, datatype=pyoxigraph.NamedNode(datatype)
        ),
        st.text(st.sampled_from('a1.e-+\\"\n\t ^@<>'), max_size=6),
        st.sampled_from([XSD + "integer", XSD + "double", XSD + "boolean", "u:d"]),
    ),
    st.builds(
        lambda text: pyoxigraph.Literal(text, language="en-GB"),
        st.text(st.sampled_from('ab "\\@^')),
    ),
)


def _expected(term: pyoxigraph.Literal) -> str:
    if term.language:
        found = language_string(term.value, term.language)
    else:
        found = literal(term.value, term.datatype.value)
    return term_text(found.kind, found.text)


@given(st.lists(LITERALS, min_size=1))
def test_agree_columns_with_the_terms_of_the_parser(
    tmp_path_factory: pytest.TempPathFactory, terms: list[pyoxigraph.Literal]
) -> None:
    node = pyoxigraph.NamedNode("u:a")
    data = pyoxigraph.serialize(
        [pyoxigraph.Triple(node, node, term) for term in terms],
        format=pyoxigraph.RdfFormat.N_TRIPLES,
    )
    path = tmp_path_factory.mktemp("rdf") / "t.nt"
    path.write_bytes(data or b"")
    expected = {("<u:a>", "<u:a>", _expected(term)) for term in terms}
    assert triples(read_rdf(path)) == expected
    assert triples(read_rdf(path, "ttl")) == expected


def test_many_triples_come_in_batches(tmp_path: Path) -> None:
    lines = [f'<u:n{n}> <u:p> "value {n % 100}" .\n' for n in range(200_000)]
    lines[150_000] = '<u:x>  <u:p> "odd \\t line" .\n'
    path = tmp_path / "t.nt"
    path.write_text("".join(lines))
    table = pa.concat_tables(rdf_batches(path))
    assert table.num_rows == 200_000
    expected = {
        (f"<u:n{n}>", "<u:p>", f'"value {n % 100}"') for n in range(200_000)
    } - {("<u:n150000>", "<u:p>", '"value 0"')}
    expected.add(("<u:x>", "<u:p>", '"odd \\t line"'))
    assert triples(table) == expected
    path = path.rename(tmp_path / "t.nq")
    batches = list(rdf_batches(path))
    assert len(batches) > 2
    assert triples(pa.concat_tables(batches)) == expected


def test_an_error_late_in_a_file_has_the_right_line(tmp_path: Path) -> None:
    path = tmp_path / "t.nt"
    good = '<u:a> <u:p> "some text that takes a little room" .\n'
    path.write_text(good * 300_000 + "<u:a> <u:p> oops .\n")
    with pytest.raises(RdfSyntaxError) as caught:
        read_rdf(path)
    assert caught.value.span is not None
    assert caught.value.span.line == 300_001
    assert caught.value.span.column == 13


@pytest.mark.parametrize(
    ("name", "count"), [("lubm/lubm-1.nt.gz", 100_543), ("lubm/univ-bench.owl", 293)]
)
def test_real_files_are_read_whole(shared_data: Path, name: str, count: int) -> None:
    path = shared_data / name
    base = "http://swat.cse.lehigh.edu/onto/univ-bench.owl"
    assert len(triples(read_rdf(path, base=base))) == count


def test_a_carriage_return_within_a_wrong_line(write: Write) -> None:
    with pytest.raises(RdfSyntaxError):
        read_rdf(write("a.nt", b'<http://e/a>\r"'))


def test_only_white_space_of_xml_may_surround_a_value(write: Write) -> None:
    literals = r'" 7\t"^^x:integer, "\u00a07"^^x:integer, "\u20281"^^x:boolean'
    data = f"@prefix x: <{XSD}> . <u:a> <u:p> {literals} ."
    table = read_rdf(write("t.ttl", data.encode()))
    assert {row[2] for row in triples(table)} == {
        "7",
        f'"\N{NO-BREAK SPACE}7"^^<{XSD}integer>',
        f'"\N{LINE SEPARATOR}1"^^<{XSD}boolean>',
    }


@pytest.mark.parametrize("name", ["t.nt", "t.ttl"])
def test_directions_are_the_end_of_language_tags(write: Write, name: str) -> None:
    path = write(name, b'<u:a> <u:p> "a"@EN--ltr .\n<u:a> <u:p> "a\\t"@ar--rtl .\n')
    kb = KnowledgeBase(engine="reference")
    kb.load(rdf=path)
    assert kb.query('[?x, ?p, "a"@en--ltr]').to_list() == [(IRI("u:a"), IRI("u:p"))]
    assert len(kb.query('[?x, ?p, "a\\t"@ar--rtl]')) == 1
    assert len(kb.query('[?x, ?p, "a"@en]')) == 0


XML = """<?xml version="1.0" encoding="{}"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">
  <rdf:Description rdf:about="http://x/a"><p>\xe9t\xe9 \u0431</p></rdf:Description>
</rdf:RDF>"""


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("UTF-16", "utf-16"),
        ("utf-16", "utf-16-be"),
        ("UTF-8", "utf-16"),
        ("UTF-16", "utf-8"),  # as programs write that change the encoding afterwards
        ("ISO-8859-1", "utf-8-sig"),
    ],
)
def test_marks_tell_the_encoding_of_xml(
    write: Write, declared: str, encoding: str
) -> None:
    data = XML.format(declared).encode(encoding)
    if encoding == "utf-16-be":
        data = b"\xfe\xff" + data
    expected = {("<http://x/a>", "<http://x/p>", '"\xe9t\xe9 \u0431"')}
    assert triples(read_rdf(write("t.rdf", data))) == expected


def test_errors_in_utf_16_have_places(write: Write) -> None:
    data = XML.format("UTF-16").replace("</p>", "</q>").encode("utf-16")
    with pytest.raises(RdfSyntaxError) as caught:
        read_rdf(write("t.rdf", data))
    assert caught.value.span is not None
    assert caught.value.span.line == 3
    with pytest.raises(RdfSyntaxError):
        read_rdf(write("t.rdf", data[:-1]))


@pytest.mark.parametrize("name", ["t.nt", "t.ttl"])
def test_numbers_of_derived_datatypes_join_compare_and_compute(
    write: Write, name: str, engine_name: str
) -> None:
    ages = {"ann": '"017"^^<{}int>', "bob": '"21"^^<{}long>', "cem": '"300"^^<{}byte>'}
    heights = {"ann": '"9.5"^^<{}float>', "bob": '"10.5"^^<{}float>'}
    lines = [
        f"<u:{who}> <u:{what}> {value.format(XSD)} .\n"
        for what, values in (("age", ages), ("height", heights))
        for who, value in values.items()
    ]
    kb = KnowledgeBase(
        """
        grown(?x) :- [?x, <u:age>, ?n], ?n > 18 .
        aged(?x) :- [?x, <u:age>, ?n], age(?n) .
        tall(?x, ?h * 2) :- [?x, <u:height>, ?h], ?h > 10 .
        taller(?x, ?y) :- [?x, <u:height>, ?h], [?y, <u:height>, ?g], ?h > ?g .
        """,
        engine=engine_name,
    )
    kb.load({"age": [(17,)]}, rdf=write(name, "".join(lines).encode()))
    assert kb.facts("grown").to_list() == [(IRI("u:bob"),)]
    assert kb.facts("aged").to_list() == [(IRI("u:ann"),)]
    assert kb.facts("tall").to_list() == [(IRI("u:bob"), 21.0)]
    assert kb.facts("taller").to_list() == [(IRI("u:bob"), IRI("u:ann"))]
    assert kb.contains("triple", (IRI("u:cem"), IRI("u:age"), _of("300", "byte")))
    assert kb.contains("triple", (IRI("u:bob"), IRI("u:height"), _of("10.5", "float")))


def _of(lexical: str, datatype: str) -> TypedLiteral:
    return TypedLiteral(lexical, XSD + datatype)


def test_triples_as_terms_of_a_store_are_refused() -> None:
    a = pyoxigraph.NamedNode("http://e/a")
    store = pyoxigraph.Store()
    store.add(pyoxigraph.Quad(a, a, pyoxigraph.Triple(a, a, a)))
    kb = KnowledgeBase()
    with pytest.raises(RdfSyntaxError, match="triples as terms are not supported"):
        kb.load(rdf=store)
    assert "triple" not in kb
