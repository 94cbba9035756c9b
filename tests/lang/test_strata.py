from __future__ import annotations

import pytest
from hypothesis import given

import oracle
import strategies
from counted_calls import calls_of
from evermat.errors import StratificationError
from evermat.lang import normalise, parse_program, parse_rules, stratify
from evermat.lang.strata import Shape, shape_of
from evermat.lang.syntax import Rule, predicate, variables
from evermat.values import IRI, constant

PREFIXES = {"": "urn:"}
RDF_TYPE = constant(IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"))


def strata(text: str) -> list[tuple[list[str], list[str]]]:
    """The heads of nonrecursive and of recursive rules, stratum by stratum."""
    stratification = stratify(normalise(parse_rules(text, prefixes=PREFIXES)))
    for index, stratum in enumerate(stratification.strata):
        assert stratum.index == index
    return [
        (
            [str(shape_of(rule.head)) for rule in stratum.nonrecursive_rules],
            [str(shape_of(rule.head)) for rule in stratum.recursive_rules],
        )
        for stratum in stratification.strata
    ]


def test_shapes_of_triples_have_constants() -> None:
    x, y, z = variables("x y z")
    triple = predicate("triple")
    knows, person = constant(IRI("urn:knows")), constant(IRI("urn:Person"))
    assert shape_of(predicate("p")(x, knows)) == Shape("p", 2)
    assert shape_of(triple(x, y, person)) == Shape("triple", 3)
    assert shape_of(triple(x, knows, person)) == Shape("triple", 3, ((1, knows),))
    assert shape_of(triple(x, RDF_TYPE, z)) == Shape("triple", 3, ((1, RDF_TYPE),))
    both = ((1, RDF_TYPE), (2, person))
    assert shape_of(triple(x, RDF_TYPE, person)) == Shape("triple", 3, both)


def test_recursive_and_nonrecursive_rules_are_told_apart() -> None:
    text = "r(?x) :- e(?x). r(?x) :- r(?y), e2(?y, ?x). s(?x) :- r(?x)."
    assert strata(text) == [(["r"], ["r"]), (["s"], [])]


def test_mutual_recursion_is_one_component() -> None:
    text = "a(?x) :- b(?x). b(?x) :- c(?x). c(?x) :- a(?x). c(?x) :- e(?x)."
    assert strata(text) == [(["c"], ["a", "b", "c"])]


def test_strata_are_levels() -> None:
    text = "".join(f"a{i}(?x) :- e(?x). b{i}(?x) :- a{i}(?x)." for i in range(50))
    found = strata(text)
    assert len(found) == 2
    assert len(found[0][0]) == len(found[1][0]) == 50


def test_negated_predicates_are_complete_before() -> None:
    text = "a(?x) :- e(?x), not b(?x). b(?x) :- e(?x), not c(?x). c(?x) :- d(?x)."
    assert [heads for heads, _ in strata(text)] == [["c"], ["b"], ["a"]]


def test_triples_with_other_predicates_are_independent() -> None:
    text = (
        "[?x, :a, ?y] :- [?x, :b, ?y]. [?x, :b, ?y] :- [?y, :c, ?x], not [?x, :d, ?y]."
    )
    assert len(strata(text)) == 2
    assert strata("[?x, a, :C] :- [?x, a, :D], not [?x, a, :E].")[0][1] == []


def test_a_body_over_all_triples_depends_on_all_of_them() -> None:
    found = strata("[?x, :a, ?y] :- e(?x, ?y). p(?x) :- [?x, ?q, _]. q :- [_, a, _].")
    assert [heads for heads, _ in found] == [["[?s, <urn:a>, ?o]", "q"], ["p"]]


def test_a_head_over_all_triples_joins_the_other_triples() -> None:
    found = strata(
        "[?x, ?p, ?y] :- e(?x, ?p, ?y). [?x, :a, ?y] :- f(?x, ?y).[?x, a, :C] :- g(?x)."
    )
    assert len(found) == 1
    with pytest.raises(StratificationError):
        strata(
            "[?x, ?p, ?y] :- e(?x, ?p, ?y), not [?x, :a, ?y].[?x, :a, ?y] :- f(?x, ?y)."
        )


def test_classes_join_when_the_class_is_a_variable() -> None:
    text = "[?x, a, ?c] :- [?x, a, ?d], s(?d, ?c). [?x, a, :C] :- e(?x)."
    assert strata(text) == [
        (
            ["[?s, a, <urn:C>]"],
            ["[?s, a, ?o]"],
        )
    ]


def test_local_atoms_lie_in_the_component_of_the_head() -> None:
    rules = normalise(
        parse_rules("r(?x) :- r(?y), e(?y, ?x), s(?x). s(?x) :- e(?x, ?x).")
    )
    stratification = stratify(rules)
    (recursive,) = stratification.recursive_rules
    stratum = stratification.strata[1]
    local = [stratum.is_local(recursive, atom) for atom in recursive.positive_atoms()]
    assert local == [True, False, False]


def test_nothing_gives_no_strata() -> None:
    assert stratify(()).strata == ()


def test_long_chains_need_no_deep_recursion() -> None:
    text = "".join(f"p{i + 1}(?x) :- p{i}(?x).\n" for i in range(3000))
    assert len(strata(text)) == 3000


@given(strategies.programs())
def test_agree_recursive_rules_are_those_of_the_oracle(
    program: tuple[Rule, ...],
) -> None:
    rules = normalise(program)
    known = oracle.Program(oracle.distinct(rules))
    recursive = {rule for rule in known.rules if known.is_recursive(rule)}
    found = stratify(rules).recursive_rules
    assert {each for rule in found for each in oracle.split(rule)} == recursive
    order = {
        shape: stratum.index
        for stratum in stratify(rules).strata
        for shape in stratum.shapes
    }
    for rule in rules:
        for atom in rule.negated_atoms():
            below = order.get(shape_of(atom), -1)
            assert below < order[shape_of(rule.head)]


def work_of_reading(count: int) -> tuple[int, int, int]:
    text = "@prefix : <urn:> .\n" + "".join(
        f"[?x, a, :C{i}] :- [?x, a, :D{i * 7 % count}] .\n" for i in range(count)
    )
    program = parse_program(text)
    rules = normalise(program.rules)
    return (
        calls_of(lambda: parse_program(text)),
        calls_of(lambda: normalise(program.rules)),
        calls_of(lambda: stratify(rules)),
    )


def test_the_work_of_reading_is_in_proportion_to_the_program() -> None:
    few, many = work_of_reading(250), work_of_reading(1000)
    assert all(more < 5 * less for less, more in zip(few, many, strict=True))
