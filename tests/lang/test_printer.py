from __future__ import annotations

import pytest
from hypothesis import given

from evermat.lang import (
    format_source,
    normalise,
    parse_program,
    parse_rules,
    rule_text,
)
from evermat.lang.lexer import tokenise
from evermat.lang.syntax import (
    Call,
    Negation,
    Program,
    Rule,
    Term,
    call,
    condition,
    predicate,
    variables,
)
from evermat.values import constant
from lang.program_strategies import programs


@given(programs)
def test_printed_programs_read_back_as_the_same(program: Program) -> None:
    assert parse_program(str(program)) == program


@given(programs)
def test_formatting_keeps_the_program_and_is_stable(program: Program) -> None:
    text = str(program)
    formatted = format_source(text)
    assert parse_program(formatted) == program
    assert format_source(formatted) == formatted


@pytest.mark.parametrize(
    "text",
    [
        "p(?x) :- q(?x, _), not r(?x) .",
        "p :- q, not r .",
        "p(?x, ?y) :- q(?x), ?y = ?x - 1 - (2 - ?x) * 3 .",
        "p(?x) :- q(?x), ?x % 2 = 1, -?x < -(1 + ?x) .",
        'p(?x), q(?x) :- [?x, a, <http://example.org/C>], [?x, ?p, "v"@en] .',
        'p(?x) :- q(?x), contains(?x, "a"), contains(?x, "b") = false .',
        "p(?x) :- q(?x), (?x < 3) = true .",
        "<contains>(?x) :- <odd\\u0020name>(?x) .",
    ],
)
def test_rules_are_printed_as_people_write_them(text: str) -> None:
    (rule,) = parse_rules(text)
    assert str(rule) == text


def test_rules_in_normal_form_read_back_though_they_assign_comparisons() -> None:
    (rule,) = normalise(parse_rules("p(?x, ?z) :- q(?x), ?z = (?x < 3) ."))
    assert normalise(parse_rules(str(rule))) == (rule,)


def test_prefixes_that_cannot_be_written_are_left_out() -> None:
    prefixes = {"a.b": "http://x/", "_c": "http://y/", "d": "http://z/"}
    program = parse_program("p(<http://x/1>, <http://z/1>) .", prefixes=prefixes)
    printed = parse_program(str(program))
    assert printed.facts == program.facts
    assert printed.prefixes == (("d", "http://z/"),)


def test_prefixes_shorten_names() -> None:
    (rule,) = parse_rules(
        "[?x, a, ex:C] :- ex:p(?x).", prefixes={"ex": "http://e.org/"}
    )
    assert rule_text(rule) == ("[?x, a, <http://e.org/C>] :- <http://e.org/p>(?x) .")
    assert rule_text(rule, {"ex": "http://e.org/"}) == "[?x, a, ex:C] :- ex:p(?x) ."


def test_rules_can_be_built_from_python() -> None:
    x, y = variables("x y")
    edge, reach = predicate("edge"), predicate("reach")
    rule = Rule((reach(x, 1),), (edge(x, y), edge(y, "b")))
    assert str(rule) == 'reach(?x, 1) :- edge(?x, ?y), edge(?y, "b") .'
    assert parse_rules(str(rule)) == (rule,)


def test_conditions_can_be_built_from_python() -> None:
    x, y = variables("x y")
    p, q = predicate("p"), predicate("q")
    body = (q(x), Negation(q(y)), condition("=", y, call("+", x, 1)))
    text = "p(?y) :- q(?x), not q(?y), ?y = ?x + 1 ."
    assert str(Rule((p(y),), body)) == text
    assert parse_rules(text) == (Rule((p(y),), body),)


def test_minus_before_a_number_is_not_the_negative_number() -> None:
    minus_one = Term(constant(-1))
    applied = Call("-", (Term(constant(1)),))
    x = variables("x")[0]
    texts = [
        str(Rule((predicate("p")(x),), (predicate("q")(x, each),)))
        for each in (minus_one, applied)
    ]
    assert texts == ["p(?x) :- q(?x, -1) .", "p(?x) :- q(?x, -(1)) ."]


UGLY = """\
@prefix ex:<http://example.org/>.%names
# about edges
edge(a,'b'). edge(b  ,c).  # two facts


reach(?x,?y):-edge(?x,?y).
reach(?x,?z):-reach(?x,?y),% one step more
  edge(?y,?z).
far(?x,?z):-reach(?x,?y),reach(?y,?z),not edge(?x,?z),
  ?x!=?z,length(?x)>3,[?x,ex:p,"v"^^ex:t].
   # the end"""

TIDY = """\
@prefix ex: <http://example.org/> .  %names
# about edges
edge(a, 'b') .
edge(b, c) .  # two facts

reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :-
    reach(?x, ?y),  % one step more
    edge(?y, ?z) .
far(?x, ?z) :-
    reach(?x, ?y),
    reach(?y, ?z),
    not edge(?x, ?z),
    ?x != ?z,
    length(?x) > 3,
    [?x, ex:p, "v"^^ex:t] .
# the end
"""


def test_formatting_keeps_comments_and_spelling() -> None:
    assert format_source(UGLY) == TIDY


def test_formatting_changes_no_token() -> None:
    before, after = tokenise(UGLY), tokenise(TIDY)
    assert [t[:2] for t in before.tokens] == [t[:2] for t in after.tokens]
    assert [t.text for t in before.comments] == [t.text for t in after.comments]


def test_formatting_does_not_turn_a_comment_into_a_remainder() -> None:
    text = "p(?x) :-\n    q(?x),\n    ?x = 1\n    % 2 is too much\n    .\n"
    assert format_source(text) == text


def test_formatting_needs_no_included_file() -> None:
    text = '@include "no_such_file.dl" .\np(ex:a) .\n'
    assert format_source(text) == text


@pytest.mark.parametrize("text", ["", "\n\n", "   "])
def test_formatting_nothing_gives_nothing(text: str) -> None:
    assert format_source(text) == ""


def test_printing_shortens_by_the_longest_namespace() -> None:
    prefixes = {"a": "http://e.org/", "b": "http://e.org/x#"}
    (rule,) = parse_rules("p(b:y) :- q .", prefixes=prefixes)
    assert rule_text(rule, prefixes) == "p(b:y) :- q ."
