"""Rule sets in SPARQL-RL, with answers worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.cli import OK, WRONG_INPUT, run
from evermat.errors import StratificationError
from evermat.kb.program_files import read_program
from evermat.lang.dialects.sparql_rl import read_sparql_rl
from evermat.lang.parser import parse_program
from evermat.lang.syntax import TRIPLE

if TYPE_CHECKING:
    from pathlib import Path

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}>\n"
FAMILY = (
    PREFIX
    + """
RULE :base { ?x :ancestor ?y } WHERE { ?x :parent ?y }
RULE { ?x :ancestor ?z } WHERE { ?x :parent ?y . ?y :ancestor ?z }
RULE { ?x a :Leaf } WHERE { ?x :parent ?y . NOT { ?child :parent ?x } }
RULE { ?x a :Alone } WHERE {
  ?x :parent ?y .
  NOT { ?other :parent ?y ; :age ?age . FILTER(?other != ?x && ?age > 3) }
}
DATA { :a :parent :b . :b :parent :c . :d :parent :c ; :age 5 . :b :age 3 }
"""
)


@pytest.fixture(params=["reference", "embedded"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pairs(kb: KnowledgeBase, name: str) -> set[tuple[object, object]]:
    """The subjects and objects of a property; IRIs without their beginning."""
    return {
        (_short(subject), _short(value))
        for subject, relation, value in kb.facts(TRIPLE)
        if _short(relation) == name
    }


def _short(value: object) -> object:
    return value.text.removeprefix(E) if isinstance(value, IRI) else value


def kinds(kb: KnowledgeBase) -> set[tuple[object, object]]:
    return pairs(kb, "http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def found(body: str, data: str, engine: str) -> set[object]:
    """The subjects for which a body holds."""
    text = f"{PREFIX} RULE {{ ?x :found true }} WHERE {{ {body} }} DATA {{ {data} }}"
    kb = KnowledgeBase(read_sparql_rl(text), engine=engine)
    return {subject for subject, _ in pairs(kb, "found")}


def test_answers_and_updates(engine: str) -> None:
    kb = KnowledgeBase(read_sparql_rl(FAMILY), engine=engine)
    ancestors = {("a", "b"), ("a", "c"), ("b", "c"), ("d", "c")}
    assert pairs(kb, "ancestor") == ancestors
    assert kinds(kb) == {("a", "Leaf"), ("d", "Leaf"), ("a", "Alone"), ("d", "Alone")}

    kb.delete(TRIPLE, [(IRI(E + "a"), IRI(E + "parent"), IRI(E + "b"))])
    assert pairs(kb, "ancestor") == {("b", "c"), ("d", "c")}
    assert kinds(kb) == {("b", "Leaf"), ("d", "Leaf"), ("d", "Alone")}

    kb.delete(TRIPLE, [(IRI(E + "d"), IRI(E + "age"), 5)])
    assert ("b", "Alone") in kinds(kb)
    kb.audit()


def test_what_is_printed_is_our_language() -> None:
    program = read_sparql_rl(FAMILY)
    assert parse_program(str(program)).rules == program.rules
    path = read_sparql_rl(PREFIX + "RULE{?x :p ?y}WHERE{?x ^:q/:r ?y}")
    assert str(path.rules[0]) == (
        f"[?x, <{E}p>, ?y] :- [?step1, <{E}q>, ?x], [?step1, <{E}r>, ?y] ."
    )


def test_values_are_set_where_there_is_one(engine: str) -> None:
    text = """
    RULE { ?x :km ?km } WHERE {
      ?x :miles ?m . NOT { ?x :measured ?any } SET(?km := ?m * 1.609) }
    RULE { ?x :share ?s } WHERE { ?x :miles ?m ; :of ?n SET(?s := ?m / ?n) }
    RULE { ?x :tag ?t } WHERE { ?x :name ?n SET(?t := CONCAT(UCASE(?n), "-", STR(?x))) }
    DATA {
      :a :miles 10 ; :of 4, 0, "x" ; :name "ann", 7 .
      :b :miles 20 ; :measured true .
      :c :miles "far" ; :of 2 .
    }
    """
    kb = KnowledgeBase(read_sparql_rl(PREFIX + text), engine=engine)
    assert {(x, float(str(n))) for x, n in pairs(kb, "km")} == {("a", 16.09)}
    assert {(x, float(str(n))) for x, n in pairs(kb, "share")} == {("a", 2.5)}
    assert pairs(kb, "tag") == {("a", f"ANN-{E}a")}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("?v = 1", "ab"),
        ("?v != 1", "cdef"),
        ("!(?v = 1.0e0)", "cdef"),
        ("?v + 0 != 1", "c"),
        ("?v = ?w", "abe"),
        ("?v != ?w", "cdf"),
        ("?v > 0 && ?v < 2", "ab"),
        ("!(?v > 1)", "ab"),
        ("!(?v > 0 && ?v < 2)", "c"),
        ("!(?v < 1 || ?v > 1)", "ab"),
        ("?v IN (2, :i, 'x')", "cdf"),
        ("?v NOT IN (:i, 'x')", "abce"),
        ("CONTAINS(?v, 'x') || ?v > 1", "cd"),
        ("!CONTAINS(?v, 'x')", "e"),
        ("REGEX(?v, '^Y', 'i')", "e"),
        ("sameTerm(?v, 1.0)", "b"),
        ("isIRI(?v)", "f"),
        ("!isIRI(?v)", "abcde"),
        ("isNumeric(?v)", "abc"),
        ("isBlank(?v)", ""),
        ("!isLiteral(?v)", "f"),
        ("LANG(?v) = 'en'", "e"),
        ("STRLEN(SUBSTR(?v, 1, ?w)) = 1", ""),
        ("-?v + 3 >= 2", "ab"),
        ("true", "abcdef"),
    ],
)
def test_filters(condition: str, expected: str, engine: str) -> None:
    data = """
    :a :v 1 ; :w 1.0 . :b :v 1.0 ; :w 1 . :c :v 2 ; :w 1 . :d :v "x" ; :w "y" .
    :e :v "y"@en ; :w "y"@en . :f :v :i ; :w :j .
    """
    body = f"?x :v ?v ; :w ?w . FILTER({condition})"
    assert found(body, data, engine) == set(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("?x :p [ :q ?y ]", "a"),
        ("?x :list (1 ?y)", "a"),
        ("?x :list/rdf:rest/rdf:rest rdf:nil", "a"),
        ("?x :p/^:p ?x", "a"),
        ("?x :p _:n . _:n :q 3", "a"),
        ("?x a :C . NOT { ?x :p ?y } NOT { ?y :none ?x }", "c"),
        ("?x a :C . NOT { ?y :p ?y }", "ac"),
        ("?x a :C . ?x :n ?n . NOT { ?y :n ?m FILTER(?m > ?n) }", "c"),
    ],
)
def test_patterns(body: str, expected: str, engine: str) -> None:
    data = ":a a :C ; :p [ :q 3 ] ; :list (1 2) ; :n 1 . :c a :C ; :n 2 ; :list (1 2 3)"
    assert found(body, data, engine) == set(expected)


def test_given_triples_can_be_told_where_nothing_derives_them(engine: str) -> None:
    text = "RULE { ?x :p 1 } WHERE DATA { ?x :q ?y . NOT DATA { ?y :q ?any } }"
    kb = KnowledgeBase(read_sparql_rl(PREFIX + text), engine=engine)
    a, b, q = (IRI(E + name) for name in "abq")
    kb.insert(TRIPLE, [(a, q, b), (b, q, 1)])
    assert pairs(kb, "p") == {("b", 1)}
    kb.delete(TRIPLE, [(b, q, 1)])
    assert pairs(kb, "p") == {("a", 1)}


def test_new_nodes_are_one_for_each_solution(engine: str) -> None:
    text = """
    RULE { ?x :part [ :size ?n ] } WHERE { ?x :n ?n ; :colour ?c }
    DATA { :a :n 1, 2 ; :colour "red", "blue" }
    """
    kb = KnowledgeBase(read_sparql_rl(PREFIX + text), engine=engine)
    assert len(pairs(kb, "part")) == 4
    assert [size for _, size in sorted(pairs(kb, "size"), key=str)].count(1) == 2


def test_rules_through_their_own_negation_are_refused() -> None:
    text = PREFIX + "RULE { ?x :p :a } WHERE { ?x :q :a NOT { ?x :p :a } }"
    with pytest.raises(StratificationError) as caught:
        KnowledgeBase(read_sparql_rl(text))
    assert "NOT { ?x :p :a }" in str(caught.value)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "family.srl"
    path.write_text(FAMILY, encoding="utf-8")
    assert read_program(path) == read_program(FAMILY)
    assert run(["check", str(path)]) == OK
    assert "no problems" in capsys.readouterr().out
    ours = tmp_path / "family.dl"
    ours.write_text(str(read_program(path)), encoding="utf-8")
    assert run(["fmt", "--write", str(ours)]) == OK
    assert read_program(ours).rules == read_program(path).rules
    path.write_text(PREFIX + "RULE { ?x :p ?y } WHERE { ?x :q :a }", encoding="utf-8")
    assert run(["check", str(path), "--syntax", "sparql-rl"]) == WRONG_INPUT
    assert "UnsafeRuleError" in capsys.readouterr().err
