"""What is read of Soufflé's language, and what it means."""

from __future__ import annotations

import pytest

from evermat import KnowledgeBase
from evermat.errors import ParseError
from evermat.kb.program_files import read_program
from evermat.lang.dialects.souffle import read_souffle


def answers(text: str, predicate: str = "out") -> list[tuple[object, ...]]:
    """The facts of a predicate, in order."""
    return sorted(KnowledgeBase(read_souffle(text)).facts(predicate))


NUMBERS = """
.decl n(x:number)
n(0). n(1). n(2). n(3).
.decl out(x:number)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("n(x), (x = 0 ; x = 3)", [0, 3]),
        ("n(x), x = 0 ; n(x), x = 3", [0, 3]),
        ("n(x), !(x = 0 ; x = 3)", [1, 2]),
        ("n(x), !(x > 0, x < 3)", [0, 3]),
        ("n(x), !(!(x > 0))", [1, 2, 3]),
        ("n(x), !(n(4), x > 0)", [0, 1, 2, 3]),
        ("n(x), (x + 1) * 2 > 6", [3]),
        ("(n(x), x < 1)", [0]),
        ("n(x), true", [0, 1, 2, 3]),
        ("n(x), false", []),
        ("n(x), (false ; x = 2)", [2]),
        ("x = 7", [7]),
        ("n(y), x = y * 10, x >= 20", [20, 30]),
        ("n(y), x = -y, y > 1", [-3, -2]),
        ("n(y), x = (y + 3) % 3", [0, 1, 2]),
        ("x = 7 / 2 ; x = -7 / 2", [-3, 3]),
        ("x = --7 ; x = -(-8)", [7, 8]),
        (f"x = {'9' * 5000}", [10**5000 - 1]),
        ("x = max(1, 5, 3)", [5]),
        ("x = 0x10 ; x = 0b11 ; x = 5u", [3, 5, 16]),
        ("n(_), x = 9", [9]),
        ("n(x), !n(4)", [0, 1, 2, 3]),
        ("x = 2 ^ 3 ^ 2 ; x = -2 ^ 2", [-4, 512]),
        ("n(y), x = y band 1", [0, 1]),
        ("x = 4 bor 3 bxor 2 band 6", [5]),
        ("x = 1 bshl 2 + 1 ; x = -9 bshr 1", [-5, 8]),
        ("n(y), x = bnot y", [-4, -3, -2, -1]),
        ("x = range(1, 4)", [1, 2, 3]),
        ("x = range(4, 1)", [2, 3, 4]),
        ("x = range(1, 1)", []),
        ("x = range(0, 10, 4) ; x = range(0, -10, -4)", [-8, -4, 0, 4, 8]),
        ("n(y), x = range(y, y + 2), x > 3", [4]),
        ("x = range(1, y), y = range(3, 5)", [1, 2, 3]),
        ("n(x), x = range(2, 9)", [2, 3]),
    ],
)
def test_bodies(body: str, expected: list[int]) -> None:
    found = answers(f"{NUMBERS} out(x) :- {body}.")
    assert found == [(value,) for value in expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('cat("a", "b", "c")', "abc"),
        ('substr("abcdef", 2, 3)', "cde"),
        ("to_string(42)", "42"),
        ('to_string(to_number("7") + 1)', "8"),
        ('to_string(strlen("four"))', "4"),
        ('"a\\"b\\t"', 'a"b\t'),
    ],
)
def test_functors_on_symbols(expression: str, expected: str) -> None:
    assert answers(f".decl out(s:symbol) out({expression}).") == [(expected,)]


def test_positions_in_texts_may_be_computed() -> None:
    text = (
        '.decl out(s:symbol) .decl p(i:number) p(1). out(substr("abc", i, 1)) :- p(i).'
    )
    assert answers(text) == [("b",)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('contains("bc", s)', ["abcd", "bc"]),
        ('!contains("bc", s)', ["b"]),
        ('match("b.*", s)', ["b", "bc"]),
        ('match("b", s)', ["b"]),
        ('match(cat("b", "c"), s)', ["bc"]),
        ('!match("b.*", s)', ["abcd"]),
        ('s < "b"', ["abcd"]),
    ],
)
def test_conditions_on_symbols(condition: str, expected: list[str]) -> None:
    text = f"""
    .decl p(s:symbol)  p("b"). p("bc"). p("abcd").
    .decl out(s:symbol)  out(s) :- p(s), {condition}.
    """
    assert answers(text) == [(value,) for value in expected]


def test_a_match_is_a_match_of_the_last_line_end_too() -> None:
    text = """
    .decl p(s:symbol)  p("b\\n").
    .decl out(s:symbol)  out(s) :- p(s), match("b", s).
    """
    assert answers(text) == []


def test_floats_are_doubles() -> None:
    text = ".decl out(x:float) .decl p(x:float) p(1.5). out(x * 2.0) :- p(x)."
    assert answers(text) == [(3.0,)]


def test_several_heads_share_a_body() -> None:
    text = ".decl p(x:number) .decl out(x:number) p(1). p(x), out(x+1) :- p(x), x < 3."
    assert answers(text) == [(2,)]


def test_variables_with_question_marks_stay_apart() -> None:
    text = """
    .decl p(x:number, y:number) p(1, 2).
    .decl out(x:number, y:number) out(?x, x) :- p(?x, x).
    """
    assert answers(text) == [(1, 2)]


def test_relations_without_columns() -> None:
    text = ".decl yes() .decl out() yes(). out() :- yes()."
    assert answers(text) == [()]


def test_an_equivalence_relation_closes_itself() -> None:
    text = '.decl out(x:symbol, y:symbol) eqrel out("a", "b"). out("b", "c").'
    assert len(answers(text)) == 9


def test_comments_pragmas_and_plans_say_nothing() -> None:
    text = """
    .pragma "magic-transform" "*"
    /* two
       lines */ .decl p(x:number) inline // to the end of the line
    p(1).
    .decl out(x:number) brie
    out(x) :- p(x), p(_).  .plan 0:(2,1), 1:(1,2)
    out(2).
    """
    assert answers(text) == [(1,), (2,)]


def test_types_are_followed_to_their_base() -> None:
    program = read_souffle("""
    .type Id = Even | Odd
    .type Even <: number
    .type Odd <: number
    .type Name = Label
    .type Label <: symbol
    .number_type Old
    .symbol_type Older
    .decl p(a:Id, b:Name, c:Old, d:Older, e:unsigned, f:float)
    """)
    (declaration,) = program.declarations
    assert declaration.column_types == (
        ("integer", "string", "integer", "string", "integer", "double")
    )
    assert declaration.column_names == ("a", "b", "c", "d", "e", "f")


def test_input_and_output_say_what_files_look_like() -> None:
    program = read_souffle("""
    .decl p(x:number, y:symbol)
    .input p(IO=file, filename="in.csv", delimiter=",", rfc4180=true, headers=true)
    .output p
    .printsize p
    .decl q, r(x:number)
    .input q, r
    """)
    first, second, third = program.sources
    assert first.path == "in.csv"
    assert dict(first.options) == {
        "types": "integer,string",
        "delimiter": ",",
        "quoting": "double",
        "values": "plain",
        "header": "true",
    }
    assert (second.path, third.path) == ("q.facts", "r.facts")
    assert [sink.path for sink in program.sinks] == ["p.csv", "-"]


def test_old_qualifiers_are_requests() -> None:
    program = read_souffle(".decl p(x:number) input  .decl q(x:number) output")
    assert [source.path for source in program.sources] == ["p.facts"]
    assert [sink.path for sink in program.sinks] == ["q.csv"]


def test_all_problems_come_in_one_report() -> None:
    with pytest.raises(SyntaxError) as caught:
        read_program(".decl p(x:number)\np(1) p(2).\np(3.\nq(1).", "souffle")
    assert str(caught.value).count("ParseError") == 3


def test_a_place_is_kept_for_every_rule() -> None:
    program = read_souffle(".decl p(x:number)\np(x) :-\n  p(x).", name="a.dl")
    span = program.rules[0].span
    assert span is not None
    assert (span.source.name, span.line, span.column) == ("a.dl", 2, 1)


COMPONENTS = """
.comp Graph<N> {
    .type Node <: N
    .decl edge(x:Node, y:Node)
    .decl reach(x:Node, y:Node) overridable
    reach(x, y) :- edge(x, y).
    reach(x, z) :- reach(x, y), edge(y, z).
}
.comp Loops<N> : Graph<N> {
    edge(x, y) :- edge(y, x).
    .override reach
    reach(x, x) :- edge(x, _).
}
.comp Both {
    .init inner = Graph<number>
    .decl size(n:number)
    size(n) :- n = count : { inner.reach(_, _) }.
    out(n) :- size(n).
}
.init g = Graph<number>
.init s = Loops<symbol>
.init b = Both
g.edge(1, 2). g.edge(2, 3). s.edge("a", "b"). b.inner.edge(7, 8).
.decl out(n:number)
out(10 * n) :- n = count : { g.reach(_, _) }.
.output g.reach
"""


def test_components_are_expanded() -> None:
    kb = KnowledgeBase(read_souffle(COMPONENTS))
    assert sorted(kb.facts("g.reach")) == [(1, 2), (1, 3), (2, 3)]
    assert sorted(kb.facts("s.edge")) == [("a", "b"), ("b", "a")]
    assert sorted(kb.facts("s.reach")) == [("a", "a"), ("b", "b")]
    assert sorted(kb.facts("b.inner.reach")) == [(7, 8)]
    assert sorted(kb.facts("out")) == [(1,), (30,)]
    (sink,) = read_souffle(COMPONENTS).sinks
    assert (sink.predicate, sink.path) == ("g.reach", "g.reach.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".comp A { .init a = A } .init b = A", "part of itself"),
        (".comp A<T> { } .init b = A", "takes 1 types, not 0"),
        (".comp A { .decl p(x:number)", "is not closed"),
        (".comp", "expected the name of a component"),
        (".init x", "expected `=`"),
    ],
)
def test_components_that_cannot_be_expanded(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_souffle(text)
