from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.errors import DeclarationError, IncludeError, ParseError, ProgramError
from evermat.lang import parse_file, parse_program, parse_query, parse_rules
from evermat.lang.syntax import (
    Atom,
    Call,
    Condition,
    DataSink,
    DataSource,
    Declaration,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    predicate,
    variables,
)
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    LangString,
    TypedLiteral,
    constant,
)

if TYPE_CHECKING:
    from pathlib import Path

x, y, z = variables("x y z")
p, q, r = predicate("p"), predicate("q"), predicate("r")


def fact_values(text: str) -> list[object]:
    (fact,) = parse_program(text).facts
    return [
        argument.constant.value
        for argument in fact.arguments
        if isinstance(argument, Term)
    ]


@pytest.mark.parametrize(
    ("term", "value"),
    [
        ("a", "a"),
        ("aB_1", "aB_1"),
        ("été", "été"),
        ('"a b"', "a b"),
        ("'say \"x\"'", 'say "x"'),
        (r'"\t\b\n\r\f\"\'\\"', "\t\b\n\r\f\"'\\"),
        (r'"\u00e9\U0001F600"', "é😀"),
        ('"""two\n"lines\\n" """', 'two\n"lines\n" '),
        ("'''it's'''", "it's"),
        ('""', ""),
        ("42", 42),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("1" * 5000, None),
        ("1.50", Decimal("1.5")),
        ("-0.0", Decimal(0)),
        ("1e3", 1000.0),
        ("2.5E-7", 2.5e-7),
        ("true", True),
        ("false", False),
        ("<http://example.org/a#b>", IRI("http://example.org/a#b")),
        (r"<http://example.org/\u0020>", IRI("http://example.org/ ")),
        ("xsd:date", IRI(XSD + "date")),
        ("_:b1", BlankNode("b1")),
        ('"2024-01-31"^^xsd:date', datetime.date(2024, 1, 31)),
        (f'"2024-01-31"^^<{XSD}date>', datetime.date(2024, 1, 31)),
        ('"5"^^xsd:integer', 5),
        ('"x"^^xsd:integer', TypedLiteral("x", XSD + "integer")),
        ('"chat"@fr', LangString("chat", "fr")),
        ("'colour'@en-GB", LangString("colour", "en-gb")),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("-(1 + 2)", -3),
        ("7 % 4", 3),
        ('concat("a", str(1))', "a1"),
        ("1 < 2", True),
    ],
)
def test_constants_are_read(term: str, value: object) -> None:
    if value is None:
        (fact,) = parse_program(f"p({term}) .").facts
        argument = fact.arguments[0]
        assert isinstance(argument, Term)
        assert argument.constant.text == term
    else:
        assert fact_values(f"p({term}) .") == [value]
        assert type(fact_values(f"p({term}) .")[0]) is type(value)


def test_bare_words_are_strings() -> None:
    assert parse_program("edge(a, b).") == parse_program('edge("a","b").')


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("p:-q.", Rule((p(),), (q(),))),
        ("p() :- q() .", Rule((p(),), (q(),))),
        ("p(?x):-q(?x).", Rule((p(x),), (q(x),))),
        ("p(?x),q(?x):-r(?x).", Rule((p(x), q(x)), (r(x),))),
        ("p(?x) :- q(?x), not r(?x).", Rule((p(x),), (q(x), Negation(r(x))))),
        ("p(?x) :- q(?x), ~r(?x).", Rule((p(x),), (q(x), Negation(r(x))))),
        ("p(?x) :- q(?x, _).", Rule((p(x),), (q(x, Variable("_")),))),
        (
            "p(?x) :- q(?x,?y),?x<?y,?y>1.",
            Rule(
                (p(x),),
                (
                    q(x, y),
                    Condition(Call("<", (x, y))),
                    Condition(Call(">", (y, Term(constant(1))))),
                ),
            ),
        ),
        (
            "p(?x+1) :- q(?x-1).",
            Rule(
                (Atom("p", (Call("+", (x, Term(constant(1)))),)),),
                (Atom("q", (Call("-", (x, Term(constant(1)))),)),),
            ),
        ),
        (
            '<urn:p>(?x) :- q(?x), "a" = ?x.',
            Rule(
                (Atom("urn:p", (x,)),),
                (q(x), Condition(Call("=", (Term(constant("a")), x)))),
            ),
        ),
        (
            "p(?x) :- q(?x), length(?x) % 2 = 1.",
            Rule(
                (p(x),),
                (
                    q(x),
                    Condition(
                        Call(
                            "=",
                            (
                                Call("%", (Call("length", (x,)), Term(constant(2)))),
                                Term(constant(1)),
                            ),
                        )
                    ),
                ),
            ),
        ),
        (
            'p(?x) :- q(?x), not contains(?x, "a").',
            Rule(
                (p(x),),
                (
                    q(x),
                    Condition(
                        Call(
                            "=",
                            (
                                Call("contains", (x, Term(constant("a")))),
                                Term(constant(value=False)),
                            ),
                        )
                    ),
                ),
            ),
        ),
    ],
)
def test_rules_are_read(text: str, rule: Rule) -> None:
    assert parse_rules(text) == (rule,)


def test_triples_are_atoms() -> None:
    rdf_type = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    triple = predicate("triple")
    (rule,) = parse_rules(
        "[?x, a, ex:C] :- [?x, ex:p, a], [?x, ?y, ?z].", prefixes={"ex": "urn:"}
    )
    assert rule.heads == (triple(x, rdf_type, IRI("urn:C")),)
    assert rule.body == (triple(x, IRI("urn:p"), "a"), triple(x, y, z))


@pytest.mark.parametrize(
    "text",
    [
        "p(a). % 2 things",
        "p(a) % 2 things\n .",
        "p(a) # ?x % 2\n.",
        "%p(b).\np(a).",
        "p(a, % 2 things\n b).",
        "p(<http://e.org/#a>). # after a hash in an IRI",
    ],
)
def test_comments_are_passed_over(text: str) -> None:
    assert len(parse_program(text).facts) == 1


def test_percent_is_the_remainder_between_operands() -> None:
    (rule,) = parse_rules("p(?x) :- q(?x), ?x % 2 = (?x) % (3) % 7 . % 2 things")
    assert str(rule) == "p(?x) :- q(?x), ?x % 2 = (?x % 3) % 7 ."


def test_columns_are_named_whatever_the_spaces() -> None:
    text = "@declare p(a:int, b: int, c :int, d : int, _e: int, f-g: int) ."
    program = parse_program(text)
    assert program.declarations[0].column_names == ("a", "b", "c", "d", "_e", "f-g")
    assert parse_program(str(program)) == program
    with pytest.raises(DeclarationError, match="unknown type `a`"):
        parse_program("@declare p(a b: int) .")


def test_several_facts_in_one_statement() -> None:
    assert parse_program("p(a), q(b).").facts == (p("a"), q("b"))


def test_directives_are_read() -> None:
    program = parse_program(
        """
        @prefix ex: <http://example.org/> .
        @base <http://example.org/base/> .
        @declare age(person: string, years:int) .
        @declare ex:p(any) .
        @declare flag .
        @import edge "edges.csv" {delimiter = ";", header = "yes"} .
        @export ex:reach "reach.csv" .
        p(<a>, <http://other.org/b>, <#c>) .
        """
    )
    assert program.prefixes == (("ex", "http://example.org/"),)
    assert program.base == "http://example.org/base/"
    assert program.declarations == (
        Declaration("age", 2, ("string", "integer"), ("person", "years")),
        Declaration("http://example.org/p", 1, ("any",)),
        Declaration("flag", 0),
    )
    assert program.sources == (
        DataSource("edge", "edges.csv", (("delimiter", ";"), ("header", "yes"))),
    )
    assert program.sinks == (DataSink("http://example.org/reach", "reach.csv"),)
    assert program.facts == (
        p(
            IRI("http://example.org/base/a"),
            IRI("http://other.org/b"),
            IRI("http://example.org/base/#c"),
        ),
    )


@pytest.mark.parametrize(
    ("base", "relative", "absolute"),
    [
        ("http://example.org/x", "#", "http://example.org/x#"),
        ("http://example.org/x#y", "", "http://example.org/x"),
        ("http://example.org/x?a#y", "", "http://example.org/x?a"),
        ("http://example.org/x?a", "?b", "http://example.org/x?b"),
        ("http://example.org/x", "a//b", "http://example.org/a//b"),
        ("http://example.org", "a", "http://example.org/a"),
        ("http://example.org/x/y/z", "../../../a", "http://example.org/a"),
        ("http://example.org/x/y/z", "..", "http://example.org/x/"),
        ("http://example.org/x/y", "/a/./b", "http://example.org/a/b"),
        ("http://example.org/x", "//example.com/a", "http://example.com/a"),
        ("foo://example.org/x/y", "a", "foo://example.org/x/a"),
        ("urn:x:", "a", "urn:x:a"),
        ("urn:x:y", "#a", "urn:x:y#a"),
        ("folder/", "a", "folder/a"),
    ],
)
def test_relative_iris_are_resolved_as_in_rdf(
    base: str, relative: str, absolute: str
) -> None:
    program = parse_program(f"@base <{base}> . p(<{relative}>) .")
    assert program.facts == (p(IRI(absolute)),)


def test_a_prefix_may_be_the_sign_of_a_fragment() -> None:
    program = parse_program("@base <http://a.org/x> . @prefix : <#> . p(:b) .")
    assert program.facts == (p(IRI("http://a.org/x#b")),)


def test_prefixes_hold_from_where_they_are_declared() -> None:
    program = parse_program(
        "@prefix e: <urn:1:> . p(e:a) . @prefix e: <urn:2:> . p(e:a) ."
    )
    assert program.facts == (p(IRI("urn:1:a")), p(IRI("urn:2:a")))


def test_included_files_are_read_once_and_relative_to_their_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.dl").write_text('@include "sub/a.dl" .\np(e:m) .')
    (tmp_path / "sub" / "a.dl").write_text(
        '@prefix e: <urn:> . @include "b.dl" . @include "a.dl" .'
    )
    (tmp_path / "sub" / "b.dl").write_text('q(e:b) . @include "../main.dl" .')
    program = parse_file(tmp_path / "main.dl")
    assert program.facts == (q(IRI("urn:b")), p(IRI("urn:m")))


def test_missing_include_is_an_error_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(IncludeError) as caught:
        parse_program('p(a) .\n@include "no.dl" .', folder=tmp_path)
    assert caught.value.lineno == 2


def test_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "binary.dl"
    path.write_bytes(b"p(a) .\n\xff")
    with pytest.raises(ParseError, match="line 2 has the byte 0xff"):
        parse_file(path)


def test_queries_are_bodies() -> None:
    expected = (p(x), Negation(q(x)))
    assert parse_query("p(?x), not q(?x)") == expected
    assert parse_query("p(?x), not q(?x) .") == expected
    assert parse_query("e:p", prefixes={"e": "urn:"}) == (Atom("urn:p", ()),)


@pytest.mark.parametrize(
    "text", ["", "p(?x) :- q(?x)", "p(?x), ", "p(?x) . q(?x)", "e:p(?x)"]
)
def test_other_texts_are_no_queries(text: str) -> None:
    with pytest.raises(ParseError):
        parse_query(text)


def test_facts_among_rules_have_empty_bodies() -> None:
    assert parse_rules("p(a). q(?x) :- p(?x).") == (
        Rule((q(x),), (p(x),)),
        Rule((p("a"),), ()),
    )


def test_parse_errors_are_syntax_errors_with_a_place() -> None:
    with pytest.raises(SyntaxError) as caught:
        parse_program("p(a) .\np(a) q .\np(A) .", name="x.dl")
    error = caught.value
    assert isinstance(error, ParseError)
    assert (error.filename, error.lineno, error.offset) == ("x.dl", 2, 6)
    assert len(error.problems) == 2
    assert str(error) in f"ParseError {error.msg}"


def test_spans_do_not_matter_for_equality() -> None:
    assert parse_rules("p(?x):-q(?x).") == parse_rules("\n p( ?x )  :-  q( ?x ) .")


def test_empty_texts_are_programs() -> None:
    assert parse_program("") == parse_program(" % nothing\n") == Program()


@given(st.text(st.sampled_from("pq(?x),.:-<>\"'\\@%#[]_1e+*/=!~{}^ \n"), max_size=40))
def test_any_text_is_a_program_or_an_error(text: str) -> None:
    try:
        program = parse_program(text)
    except ProgramError as error:
        problems = error.problems
        assert problems
        assert all(problem.span is not None for problem in problems)
    else:
        assert parse_program(str(program)) == program
