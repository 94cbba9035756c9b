"""What is read of the language of Nemo and Rulewerk, and what it means."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evermat import IRI, BlankNode, KnowledgeBase, LangString
from evermat.errors import ConstantExpressionError, ProgramError
from evermat.lang.dialects.nemo import read_nemo
from evermat.values import TypedLiteral, Value


def answers(text: str, predicate: str = "out") -> list[tuple[Value, ...]]:
    return KnowledgeBase(read_nemo(text)).facts(predicate).to_list()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("alice", IRI("alice")),
        ("<http://a/b>", IRI("http://a/b")),
        ("ex:b", IRI("http://ex/b")),
        (":b", IRI("http://default/b")),
        ("Hello%20World", IRI("Hello%20World")),
        ('"text"', "text"),
        ('"a\\nb"', "a\nb"),
        ('"""two\nlines"""', "two\nlines"),
        ('"chat"@fr', LangString("chat", "fr")),
        ('"5"^^xsd:integer', 5),
        ('"x"^^<http://t>', TypedLiteral("x", "http://t")),
        ("42", 42),
        ("-42", -42),
        ("0xFF", 255),
        ("0o17", 15),
        ("0b101", 5),
        ("1.50", Decimal("1.5")),
        ("1e3", 1000.0),
        ("2.5d", 2.5),
        ("true", True),
        ("_:b", BlankNode("b")),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-(-42)", 42),
        ("-(-1.5)", Decimal("1.5")),
        ("SUM(1, 2, 3)", 6),
        ("SUM(1)", 1),
        ("PROD(5)", 5),
        ("PROD(2, 3, 4)", 24),
        ("REM(7, 4)", 3),
        ('CONCAT("a", "b")', "ab"),
        ('UCASE("a")', "A"),
        ('strlen("four")', 4),
        ('SUBSTR("abcdef", 2, 3)', "bcd"),
        ('f"a{1 + 1}{{b}}"', "a2{b}"),
        ("$who", IRI("bob")),
    ],
)
def test_terms(written: str, expected: object) -> None:
    text = f"""
    @prefix ex: <http://ex/> .
    @prefix : <http://default/> .
    @parameter $who = bob .
    out({written}) .
    """
    assert answers(text) == [(expected,)]


@pytest.mark.parametrize("written", ["SUM()", 'STRLEN("a", "b")', "ABS()"])
def test_functions_need_the_right_number_of_arguments(written: str) -> None:
    with pytest.raises(ProgramError, match="argument"):
        read_nemo(f"out({written}) .")


def test_integers_may_be_long() -> None:
    assert answers(f"out({'9' * 5000}) .") == [(10**5000 - 1,)]


def test_names_stand_behind_the_base() -> None:
    text = "@base <http://b/> . p(a). out(?x) :- p(?x), ?x != <c> ."
    assert answers(text, "http://b/out") == [(IRI("http://b/a"),)]


def test_percent_begins_a_comment() -> None:
    text = "%! about the file\n%%% about a rule\nout(a). % the rest\n% out(b) ."
    assert answers(text) == [(IRI("a"),)]


def test_attributes_say_nothing() -> None:
    assert answers('#[name("first")]\nout(?x) :- p(?x) . p(1).') == [(1,)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("p(?x), ~q(?x, ?any)", [3]),
        ("p(?x), ~q(?x, _)", [3]),
        ("p(?x), ?x > 1, ?x <= 2", [2]),
        ("p(?x), ?x = ?y, ?y = 3", [3]),
        ("p(?y), ?x = ?y + 10, ?y < 2", [11]),
        ('p(?x), CONTAINS(STR(?x), "2")', [2]),
        ("p(?x), ABS(?x) >= 3", [3]),
        ("p(?x), ?x + 1 = 3", [2]),
        ("p(?x), p(?y), ?x<?y,?y>2", [1, 2]),
    ],
)
def test_bodies(body: str, expected: list[int]) -> None:
    text = f"p(1). p(2). p(3). q(1, 5). q(2, 6). out(?x) :- {body} ."
    assert sorted(answers(text)) == [(value,) for value in expected]


def test_several_heads_share_a_body() -> None:
    kb = KnowledgeBase(read_nemo("p(1). q(?x), r(?x, ?x - 1) :- p(?x) ."))
    assert kb.facts("q").to_list() == [(1,)]
    assert kb.facts("r").to_list() == [(1, 0)]


def test_an_existential_variable_depends_on_what_the_heads_share() -> None:
    text = """
    person(a). person(b). likes(a, x). likes(a, y). likes(b, x).
    parent(?p, !c), person_of(!c) :- person(?p), likes(?p, ?thing) .
    """
    kb = KnowledgeBase(read_nemo(text))
    parents = kb.facts("parent").to_list()
    assert len(parents) == 2
    assert {child for _, child in parents} == {
        child for (child,) in kb.facts("person_of")
    }
    assert all(isinstance(child, BlankNode) for _, child in parents)


def test_existential_variables_of_different_rules_are_different() -> None:
    text = "p(a). q(?x, !y) :- p(?x) . q(?x, !y) :- p(?x), p(?x), ?x = ?x ."
    assert len(answers(text, "q")) == 2


def test_a_name_for_an_unknown_individual_survives_other_rules() -> None:
    rule = "q(?x, !y) :- p(?x) ."
    alone = answers(f"p(a). {rule}", "q")
    assert answers(f"p(a). r(?x, !y) :- p(?x), p(?x) . {rule}", "q") == alone


def test_universal_and_existential_variables_may_share_a_name() -> None:
    ((known, invented),) = answers("p(a). out(?y, !y) :- p(?y) .")
    assert known == IRI("a")
    assert isinstance(invented, BlankNode)


def test_an_individual_is_the_same_in_all_heads_of_a_rule() -> None:
    kb = KnowledgeBase(read_nemo("p(a). q(!y, ?x), r(?x, !y, !z) :- p(?x) ."))
    ((first, _),) = kb.facts("q")
    ((_, second, third),) = kb.facts("r")
    assert first == second != third


def test_a_fact_may_ask_for_an_individual() -> None:
    ((found,),) = answers("out(!x) .")
    assert isinstance(found, BlankNode)


def test_parameters_can_be_given_from_outside() -> None:
    text = '@parameter $n = "inside" . @parameter $m . p($n, $m) .'
    program = read_nemo(text, parameters={"n": "outside", "m": 7})
    assert str(program).strip() == 'p("outside", 7) .'


def test_imports_say_what_files_look_like() -> None:
    program = read_nemo("""
    @parameter $set = "A" .
    @import a :- csv{resource = f"data{?s}.csv", ignore_headers = true}, ?s = $set .
    @import b :- tsv{resource = "b.tsv.gz", compression = "gzip", quoting = false} .
    @import c :- dsv{resource = "c", delimiter = ";", format = (any, skip, int)} .
    @import d :- turtle{resource = "d.ttl"} .
    @source e[2] : load-csv("e.csv") .
    @source f[3] : load-rdf("f.nt.gz") .
    p(?x) :- a(?x, ?y), b(?x) .
    """)
    options = {source.path: dict(source.options) for source in program.sources}
    assert options == {
        "dataA.csv": {
            "delimiter": ",",
            "quoting": "double",
            "header": "true",
            "rows": "lenient",
            "types": "any,any",
        },
        "b.tsv.gz": {
            "delimiter": "\t",
            "quoting": "none",
            "compression": "gzip",
            "rows": "lenient",
            "types": "any",
        },
        "c": {
            "delimiter": ";",
            "quoting": "double",
            "types": "any,skip,integer",
            "rows": "lenient",
        },
        "d.ttl": {"form": "turtle", "rows": "lenient"},
        "e.csv": {
            "delimiter": ",",
            "quoting": "double",
            "types": "any,any",
            "rows": "lenient",
        },
        "f.nt.gz": {"form": "rdf"},
    }


def test_exports_are_named_after_their_predicate() -> None:
    program = read_nemo("""
    @base <https://example.org/> .
    @export result :- csv{} .
    @export other :- tsv{compression = "gzip"} .
    @output more .
    """)
    assert [sink.path for sink in program.sinks] == [
        "https___example.org_result.csv",
        "https___example.org_other.tsv.gz",
        "https___example.org_more.csv",
    ]


def test_one_sink_per_predicate_and_file() -> None:
    program = read_nemo("@output p . @export p :- csv{} .")
    assert len(program.sinks) == 1


def test_declarations_of_older_versions() -> None:
    (declaration,) = read_nemo("@declare p(any, integer, string) .").declarations
    assert declaration.column_types == ("any", "integer", "string")


def test_a_setting_without_a_value_is_told() -> None:
    with pytest.raises(ConstantExpressionError, match=r"`\?a` has no value here"):
        read_nemo('@import p :- csv{resource = f"{?a}.csv"} .')
