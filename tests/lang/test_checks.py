"""What checks accept; the messages of what they refuse are in `tests/errors`."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given

import strategies
from evermat.errors import (
    ArityError,
    ProgramError,
    TypeMismatchError,
    UndefinedPredicateWarning,
    UnsafeRuleError,
)
from evermat.lang import (
    check_program,
    normalise,
    parse_program,
    require_valid,
    stratify,
)
from evermat.lang.syntax import Program, Rule, predicate, variables
from lang.program_strategies import programs


@pytest.mark.parametrize(
    "text",
    [
        "p(?x) :- q(?x), ?y = ?x + 1, ?z = ?y * 2, r(?z) .",
        "p(?z) :- q(?x), ?z + 0 = ?x, r(?z) .",
        "p(?x) :- q(?x), not r(?x, ?y), not s(?x, ?z) .",
        "p(?x) :- ?x = 3 .",
        "p(?y) :- q(?x), ?x = ?y .",
        "@declare p(integer) . p(?x) :- q(?x), ?x < 1.5 .",
        "@declare p(number) . q(?y) :- p(?x), ?y = ?x / 2 . p(1.5) .",
        "@declare p(any) . q(?y) :- p(?x), ?y = ?x / 2, ?z = concat(?x, ?y), r(?z) .",
        "@declare p(string) . p(a) . q(?y) :- p(?x), ?y = int(?x) + length(?x) .",
        "@declare t(iri) . t(<urn:a>) . q(?x) :- t(?x), contains(?x, str(1)) .",
        "win(?x) :- move(?x, ?y), not lost(?y) . lost(?x) :- stuck(?x) .",
        "[?x, a, <urn:C>] :- [?x, a, <urn:D>], not [?x, a, <urn:E>] .",
    ],
)
def test_these_programs_are_fine(text: str) -> None:
    assert check_program(parse_program(text)).errors == ()


@given(strategies.programs())
def test_random_programs_are_fine(program: tuple[Rule, ...]) -> None:
    require_valid(Program(rules=tuple(program)))


def test_programs_without_places_are_checked_too() -> None:
    x, y = variables("x y")
    p, q = predicate("p"), predicate("q")
    with pytest.raises(ProgramError) as caught:
        require_valid(Program(rules=(Rule((p(x, y),), (q(x), q(x, x))),)))
    assert {type(each) for each in caught.value.problems} == {
        ArityError,
        UnsafeRuleError,
    }
    assert caught.value.span is None


def test_patterns_that_are_worked_out_are_checked() -> None:
    program = parse_program('p(?x) :- q(?x), regex("a", concat("(", "b")) .')
    (problem,) = check_program(program).errors
    assert problem.code == "EM404"


def test_all_problems_can_be_caught_by_their_common_class() -> None:
    program = parse_program("@declare p(string) . p(1) . p(2) .")
    with pytest.raises(ProgramError) as caught:
        require_valid(program)
    assert isinstance(caught.value, TypeMismatchError)
    assert len(caught.value.problems) == 2


def test_known_predicates_are_defined() -> None:
    program = parse_program("p(?x) :- q(?x) .")
    assert check_program(program).warnings == ()
    (warning,) = check_program(program, known=()).warnings
    assert isinstance(warning, UndefinedPredicateWarning)
    assert check_program(program, known=["q"]).warnings == ()


def test_errors_survive_pickling() -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program("p(A). q(B).")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own
    assert str(copy) == str(caught.value)


def test_report_of_a_fine_program_is_fine() -> None:
    report = check_program(parse_program("p(?x) :- q(?x) . q(a) ."))
    assert report.is_fine
    assert report.warnings == ()


@given(programs)
def test_any_program_is_refused_or_can_be_stratified(program: Program) -> None:
    report = check_program(program)
    assert all(str(each) for each in (*report.errors, *report.warnings))
    if report.is_fine:
        stratify(normalise(program.rules))
