"""Rule sets for VLog and RDFox."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.kb.program_files import read_program
from evermat.lang.dialects.dlog import read_dlog
from evermat.lang.syntax import TRIPLE, Atom, Program, Term
from foreign.expected_answers import DATA

if TYPE_CHECKING:
    from pathlib import Path

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def rule_sets() -> list[object]:
    path = DATA / "rulesets" / "index.json"
    if not path.exists():
        skip = pytest.mark.skip(reason=f"no rule sets at {DATA}; set EVERMAT_TEST_DATA")
        return [pytest.param(None, marks=skip)]
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [pytest.param(entry, id=entry["file"]) for entry in entries]


def predicates(program: Program) -> set[str]:
    """Predicates; a class or property stands for the triples with it."""
    atoms = [
        atom for rule in program.rules for atom in (*rule.heads, *rule.positive_atoms())
    ]
    return {
        _iri(atom) if atom.predicate == TRIPLE else atom.predicate for atom in atoms
    }


def _iri(atom: Atom) -> str:
    _, relation, individual = atom.arguments
    assert isinstance(relation, Term)
    if relation.constant.text != TYPE:
        return relation.constant.text
    assert isinstance(individual, Term)
    return individual.constant.text


@pytest.mark.parametrize("entry", rule_sets())
def test_rule_set(entry: dict[str, int], shared_data: Path) -> None:
    program = read_program(shared_data / "rulesets" / str(entry["file"]))
    assert len(program.rules) == entry["rules"]
    used = predicates(program)
    # VLog's sets name each class and property twice: as `RPn`, and where it comes from.
    copied = {name for name in used if re.fullmatch(r"RP\d+", name)}
    # The triple relation, of which they are copied, counts as one.
    count = len(copied) + 1 if copied else len(used)
    assert count == entry["predicates"]


@pytest.mark.parametrize(
    "entry",
    [
        parameter
        for parameter in rule_sets()
        if "facts_on_lubm_1" in str(parameter) or "None" in str(parameter)
    ],
)
def test_rule_set_on_lubm(entry: dict[str, int], shared_data: Path) -> None:
    kb = KnowledgeBase(shared_data / "rulesets" / str(entry["file"]))
    kb.load({}, rdf=[shared_data / "lubm" / "lubm-1.nt.gz"])
    derived = [name for name in kb.predicates if name.startswith("RP")]
    assert sum(kb.count(name) for name in derived) == entry["facts_on_lubm_1"]


def test_capital_letters_are_variables() -> None:
    program = read_dlog("RP0(A,b) :- TE(A,rdf:type,<http://c>), RP1(A,_)")
    expected = 'RP0(?A, "b") :- [?A, a, <http://c>], RP1(?A, _) .'
    assert str(program).strip() == expected


def test_predicates_of_rdfox_are_triples() -> None:
    text = """
    PREFIX a: <http://a/>
    a:Person(?X) :- a:knows(?X, ?Y), not a:Robot[?X] .
    [?X, a:knows, ?Y] :- a:knows(?Y, ?X) .
    a:knows(a:ann, a:bob) .
    a:Robot(a:bob) .
    """
    kb = KnowledgeBase(read_dlog(text))
    person = IRI("http://a/Person")
    people = [s for s, p, o in kb.facts("triple") if (p, o) == (IRI(TYPE), person)]
    assert people == [IRI("http://a/ann")]


def test_a_mistake_costs_one_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        read_dlog("P(X) : Q(X)\nP(X) :- Q(X)\nP(X) :- Q(X\nP(X) :- R(X)")
    assert str(caught.value).count("ParseError") == 2


def test_filters_and_values_of_rdfox() -> None:
    text = """
        PREFIX : <http://e.org/>
        [:car, :price, 4] . [:door, :price, 1.5] . [:bell, :price, -1] .
        [:gift, :price, "none"] .
        dear(?x) :- [?x, :price, ?v], FILTER(?v > 1 && ?v != 1.5 || ?x = :bell) .
        twice(?x, ?w) :- [?x, :price, ?v], BIND(?v * 2 + 1 AS ?w), FILTER(?w >= 0) .
        listed(?v) :- [?x, :price, ?v], FILTER(?v IN (4.0, "none")) .
    """
    kb = KnowledgeBase(read_dlog(text))

    def names(query: str) -> set[tuple[str, ...]]:
        return {
            tuple(str(each).rpartition("/")[2] for each in row)
            for row in kb.query(query)
        }

    assert names("dear(?x)") == {("car",), ("bell",)}
    assert names("twice(?x, ?w)") == {("car", "9"), ("door", "4.0")}
    assert names("listed(?v)") == {("4",), ("none",)}
