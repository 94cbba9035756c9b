"""Equality as users see it: modes, answers, changes, contradictions and refusals."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal, cast

import pytest

import evermat
from evermat.algebra import Engine
from evermat.algebra.equality import NoRewritingError, UnequalValuesError
from evermat.engines.reference.engine import ReferenceEngine
from evermat.errors import StratificationError
from evermat.kb.equality import UnknownEqualityError
from evermat.lang.catalogue import ArityClashError
from evermat.lang.equality import EqualityError
from evermat.maintenance.algorithms import AlgorithmError
from evermat.values import IRI

if TYPE_CHECKING:
    from evermat.engines.reference.equality import Cliques

OWL = "http://www.w3.org/2002/07/owl#sameAs"


def iri(name: str) -> IRI:
    return IRI(f"http://e.org/{name}")


def test_auto_rewrites_when_equality_is_first_mentioned(engine_name: str) -> None:
    kb = evermat.KnowledgeBase("p(?x) :- q(?x) . q(a) .", engine=engine_name)
    assert kb.counters("p").to_list() == [("a", 1, 0)]
    change = kb.insert("same_as", [("a", "b")])
    assert change.added("p").to_list() == [("b",)]
    assert set(kb.query("p(?x)")) == {("a",), ("b",)}
    kb.delete("same_as", [("a", "b")])
    assert kb.facts("p").to_list() == [("a",)]


def test_what_is_held_is_no_news_when_equality_comes(engine_name: str) -> None:
    """Nobody reads the closure, so that only what it starts from is stored."""
    rules = "t(?x, ?z) :- t(?x, ?y), t(?y, ?z) . n(?x) :- m(?x) ."
    kb = evermat.KnowledgeBase(rules, engine=engine_name)
    kb.load({"t": [("a", "b"), ("b", "c")]})
    with pytest.raises(UnequalValuesError):
        kb.insert("same_as", [(1, 2)])
    assert set(kb.counters("t")) == {
        ("a", "b", 1, 0),
        ("b", "c", 1, 0),
        ("a", "c", 0, 1),
    }
    change = kb.update(insert={"same_as": [("c", "d")]}, delete={"t": [("a", "b")]})
    assert set(change.added("t")) == {("b", "d")}
    assert set(change.removed("t")) == {("a", "b"), ("a", "c")}
    assert set(kb.facts("t")) == {("b", "c"), ("b", "d")}


@pytest.mark.parametrize("mode", ["rewrite", "axioms"])
def test_constants_that_only_rules_mention_are_equal(
    engine_name: str, mode: Literal["rewrite", "axioms"]
) -> None:
    rules = "b ≈ c :- q(a) . v(?x, ?y) :- ?x ≈ ?y . w(?x) :- b ≈ ?x ."
    kb = evermat.KnowledgeBase(rules, engine=engine_name, equality=mode)
    kb.insert("q", [("a",)])
    pairs = {("b", "b"), ("b", "c"), ("c", "b"), ("c", "c"), ("a", "a")}
    assert set(kb.facts("same_as")) == set(kb.facts("v")) == pairs
    assert set(kb.facts("w")) == set(kb.query("b ≈ ?x")) == {("b",), ("c",)}
    assert kb.contains("same_as", ("c", "b"))
    change = kb.update(delete={"q": [("a",)]}, insert={"q": [("b",)]})
    assert set(change.removed("v")) == pairs - {("b", "b")}
    assert set(kb.facts("same_as")) == set(kb.facts("v")) == {("b", "b")}


def test_off_gives_equality_no_meaning(engine_name: str) -> None:
    kb = evermat.KnowledgeBase("p(a) . a ≈ b .", engine=engine_name, equality="off")
    assert kb.facts("p").to_list() == [("a",)]
    assert kb.count("same_as") == 1


def test_axioms_stay_though_rules_like_them_go(engine_name: str) -> None:
    rule = "same_as(?x, ?x) :- p(?x) ."
    kb = evermat.KnowledgeBase(f"{rule} p(a) .", engine=engine_name, equality="axioms")
    assert kb.update(remove_rules=rule).is_empty()
    assert kb.contains("same_as", ("a", "a"))


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(UnknownEqualityError, match="rewrite"):
        evermat.KnowledgeBase(equality="always")  # type: ignore[arg-type]


def test_engines_that_keep_no_representatives_are_refused() -> None:
    class Other(ReferenceEngine):
        name = "other"

        def representatives(self) -> Cliques:
            return cast("Cliques", Engine.representatives(self))

    other = Other()
    with pytest.raises(NoRewritingError, match="axioms"):
        evermat.KnowledgeBase(engine=other, equality="rewrite")


def test_triples_and_facts_speak_of_the_same_equality(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name)
    same = (iri("a"), IRI(OWL), iri("b"))
    kb.load({"triple": [same, (iri("a"), iri("p"), iri("c"))], "q": [(iri("b"),)]})
    assert set(kb.query("q(?x)")) == {(iri("a"),), (iri("b"),)}
    assert kb.contains("triple", (iri("b"), iri("p"), iri("c")))
    assert kb.contains("triple", (iri("b"), IRI(OWL), iri("a")))
    assert (iri("c"), IRI(OWL), iri("c")) in set(kb.facts("triple"))
    change = kb.delete("triple", [same])
    assert set(change.removed("q")) == {(iri("a"),)}
    assert (iri("a"), IRI(OWL), iri("b")) in set(change.removed("triple"))


def test_equal_predicates_and_constants_of_rules(engine_name: str) -> None:
    rules = """
        @prefix : <http://e.org/> .
        [?x, :linked, ?y] :- [?x, :p, ?y] .
        special(?x) :- [?x, :p, :gold] .
    """
    kb = evermat.KnowledgeBase(rules, engine=engine_name)
    kb.insert("triple", [(iri("a"), iri("q"), iri("or"))])
    assert kb.count("special") == 0
    kb.load({"same_as": [(iri("p"), iri("q")), (iri("or"), iri("gold"))]})
    assert kb.facts("special").to_list() == [(iri("a"),)]
    assert kb.contains("triple", (iri("a"), iri("linked"), iri("gold")))
    kb.delete("same_as", [(iri("gold"), iri("or"))])
    assert kb.count("special") == 1  # that pair was not given in this order
    kb.delete("same_as", [(iri("or"), iri("gold"))])
    assert kb.count("special") == 0
    assert kb.contains("triple", (iri("a"), iri("linked"), iri("or")))


def test_answers_are_expanded_and_counted(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name)
    names = [f"n{number}" for number in range(50)]
    kb.load({"same_as": [("n0", name) for name in names], "likes": [("n3", "n4")]})
    assert kb.count("likes") == len(kb.query("likes(?x, ?y)")) == 2500
    assert len(kb.query("likes(?x, _)")) == 50
    assert len(kb.query("likes(?x, ?x)")) == 50
    assert len(kb.query("likes(n7, ?y), same_as(?y, ?z)")) == 2500
    assert len(kb.query("likes(?x, ?y)", raw=True)) == 1
    assert kb.count("same_as") == 2500
    assert kb.query("likes(?x, ?y)").to_arrow().num_rows == 2500


def test_counts_are_of_any_size(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name)
    names = [f"n{number}" for number in range(100)]
    kb.load({"same_as": [("n0", name) for name in names], "row": [("n3",) * 10]})
    assert kb.count("row") == 100**10


def test_negation_sees_cliques_and_comparisons_see_names(engine_name: str) -> None:
    rules = """
        other(?x, ?y) :- p(?x), p(?y), not same_as(?x, ?y) .
        distinct(?x, ?y) :- p(?x), p(?y), ?x != ?y .
        free(?x) :- p(?x), not taken(?x) .
        large(?x) :- size(?x, ?n), ?n > 3 .
    """
    kb = evermat.KnowledgeBase(rules, engine=engine_name, equality="rewrite")
    kb.load({"p": [("a",), ("b",), ("c",)], "taken": [("b",)], "size": [("c", "five")]})
    assert kb.count("other") == 6
    kb.insert("same_as", [("a", "b")])
    assert kb.count("other") == 4
    assert kb.count("distinct") == 8  # all but (c, c): a and b are different names
    assert kb.facts("free").to_list() == [("c",)]
    assert kb.count("large") == 0
    kb.insert("same_as", [("five", 5)])
    assert kb.facts("large").to_list() == [("c",)]
    kb.delete("same_as", [("a", "b")])
    assert kb.count("distinct") == 6
    assert set(kb.facts("free")) == {("a",), ("c",)}


def test_changes_can_be_asked_for_equality_of_triples(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name)
    same = (iri("a"), IRI(OWL), iri("b"))
    change = kb.load({"triple": [same]})
    pairs = {(iri("a"), iri("b")), (iri("b"), iri("a"))}
    assert set(change.added("same_as")) == pairs
    assert set(change.added("same_as", "derived")) == pairs
    assert change.predicates == ("triple",)
    change = kb.insert("triple", [(iri("b"), IRI(OWL), iri("c"))])
    assert len(change.added("same_as")) == 4
    change = kb.delete("triple", [same])
    assert set(change.removed("same_as")) > pairs
    assert not change.added("same_as")


def test_a_text_like_the_name_of_equality_is_told_of(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name, equality="rewrite")
    change = kb.insert("triple", [(iri("a"), OWL, iri("b"))])
    assert change.added("triple").to_list() == [(iri("a"), OWL, iri("b"))]


@pytest.mark.parametrize("mode", ["auto", "axioms", "rewrite"])
@pytest.mark.parametrize(
    ("name", "row", "other"),
    [("triple", "ab", "same_as"), ("same_as", "abc", "triple")],
)
def test_predicates_of_equality_have_their_usual_arity(
    mode: Literal["auto", "axioms", "rewrite"], name: str, row: str, other: str
) -> None:
    kb = evermat.KnowledgeBase(equality=mode)
    equality = {
        "same_as": [("a", "b")],
        "triple": [(iri("a"), IRI(OWL), iri("b"))],
    }
    with pytest.raises(ArityClashError, match=f"`{name}` has"):
        kb.update(insert={name: [tuple(row)], other: equality[other]})
    assert kb.predicates.keys() <= {"same_as"}


def test_values_are_never_equal(engine_name: str) -> None:
    rules = "?x ≈ ?y :- age(?who, ?x), age(?who, ?y) ."
    kb = evermat.KnowledgeBase(rules, engine=engine_name)
    kb.insert("age", [("ann", 7), ("bob", 8)])
    with pytest.raises(UnequalValuesError, match="7 and 9") as caught:
        kb.insert("age", [("ann", 9)])
    assert 'age("ann", 7)' in str(caught.value)
    with pytest.raises(UnequalValuesError, match="7 and 8"):
        kb.insert("same_as", [("ann", "bob")])
    assert kb.count("age") == 2
    assert len(kb.representatives()) == 0


def test_strings_are_literals_in_triples(engine_name: str) -> None:
    rules = (
        "?x ≈ ?y :- [?who, <http://e.org/name>, ?x], [?who, <http://e.org/name>, ?y] ."
    )
    kb = evermat.KnowledgeBase(rules, engine=engine_name)
    kb.insert("triple", [(iri("a"), iri("name"), "Ann")])
    with pytest.raises(UnequalValuesError, match="Anna"):
        kb.insert("triple", [(iri("a"), iri("name"), "Anna")])


def test_a_contradiction_tells_all_equalities_between_the_values(
    engine_name: str,
) -> None:
    kb = evermat.KnowledgeBase("p(a) .", engine=engine_name)
    links = [("a", 1), ("a", "b"), ("c", "b"), ("c", 2), ("d", 1), ("e", "f")]
    with pytest.raises(UnequalValuesError, match="1 and 2 would be equal") as caught:
        kb.insert("same_as", links)
    told = [text for text in caught.value.derivation if text.startswith("same_as")]
    assert told == [
        'same_as("a", "b")',
        'same_as("a", 1)',
        'same_as("c", "b")',
        'same_as("c", 2)',
    ]
    assert kb.facts("p").to_list() == [("a",)]


def test_a_contradiction_tells_what_names_stand_for(engine_name: str) -> None:
    rules = "?n ≈ ?m :- age(?x, ?n), age(?x, ?m) . ann ≈ anna ."
    kb = evermat.KnowledgeBase(rules, engine=engine_name)
    kb.insert("age", [("ann", 30)])
    with pytest.raises(UnequalValuesError) as caught:
        kb.insert("age", [("anna", 31)])
    assert '"ann" ≈ "anna"' in caught.value.derivation


def test_equality_cannot_depend_on_negation(engine_name: str) -> None:
    rules = "?x ≈ ?y :- p(?x, ?z), p(?y, ?z), not blocked(?z) ."
    with pytest.raises(EqualityError, match="not blocked"):
        evermat.KnowledgeBase(rules, engine=engine_name)


@pytest.mark.parametrize(
    "condition",
    [
        "?x <= ?y",
        "min(?x, ?y) = ?x",
        "?z = min(?x, ?y), ?z = ?x",
        "?x <= min(?y, ?x)",
        "length(?x) > 0",
        "3 < 4 + length(?x)",
    ],
)
def test_equality_cannot_depend_on_how_equal_names_are_written(
    engine_name: str, condition: str
) -> None:
    rule = f"?x ≈ ?y :- p(?x, ?y), {condition} ."
    kb = evermat.KnowledgeBase(rule, engine=engine_name)
    kb.insert("p", [("a", "a")])
    with pytest.raises(EqualityError, match=r'"a" is written, .* equal .*: same_as'):
        kb.insert("p", [("a", "b")])
    assert kb.facts("p").to_list() == [("a", "a")]
    assert not kb.representatives()


RECORDS = """
    key(?x, ?k) :- mail(?x, ?m), ?k = lower(?m) .
    ?x ≈ ?y :- key(?x, ?k), key(?y, ?k), ?x != ?y .
"""


def test_records_are_matched_by_what_nothing_is_equal_to(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(RECORDS, engine=engine_name)
    kb.load({"mail": [("p1", "Ann"), ("p2", "ANN"), ("p3", "Bob")]})
    assert set(kb.representatives()) == {("p1", "p1"), ("p2", "p1")}
    for other in ("Ann", "ann"):  # what is read, and what is computed
        with pytest.raises(EqualityError, match=f'"{other}" is written'):
            kb.insert("same_as", [(other, "anna")])
    kb.insert("same_as", [("Eve", "eve")])
    kb.insert("mail", [("p4", "bob")])
    assert ("p4", "p3") in set(kb.representatives())
    with pytest.raises(EqualityError, match='"Eve" is written'):
        kb.insert("mail", [("p5", "Eve")])
    kb.delete("mail", [("p1", "Ann")])
    assert {row[1] for row in kb.representatives()} == {"Eve", "p3"}


def test_what_a_rule_makes_equal_it_may_tell_apart(engine_name: str) -> None:
    rule = "?x ≈ ?y :- child(?z, ?x), child(?z, ?y), ?x != ?y ."
    kb = evermat.KnowledgeBase(rule, engine=engine_name)
    kb.load({"child": [("z", "a"), ("z", "b"), ("y", "b"), ("y", "c")]})
    assert set(kb.query("child(z, ?x)")) == {("a",), ("b",), ("c",)}


def test_computed_names_are_not_made_equal() -> None:
    with pytest.raises(
        EqualityError, match="computed would be equal to others: same_as"
    ):
        evermat.KnowledgeBase("?x ≈ ?y :- p(?x), ?y = lower(?x) .")


def test_numbers_that_identify_things_get_advice(engine_name: str) -> None:
    kb = evermat.KnowledgeBase("?x ≈ ?y :- p(?x, ?z), p(?y, ?z) .", engine=engine_name)
    with pytest.raises(UnequalValuesError) as caught:
        kb.insert("p", [(1, "a"), (2, "a")])
    assert "numbers that identify things must be names" in str(caught.value)
    assert "astype(str)" in str(caught.value)


def test_equality_may_depend_on_numbers(engine_name: str) -> None:
    rule = "?x ≈ ?y :- p(?x, ?n), p(?y, ?m), min(?n, 7) = ?m - 1, ?m > 2 ."
    kb = evermat.KnowledgeBase(rule, engine=engine_name)
    kb.load({"p": [("a", 7), ("b", 8), ("c", 1), ("d", 2)]})
    assert {row[0] for row in kb.representatives()} == {"a", "b"}


def test_rules_are_refused_in_parts_as_they_are_at_once(engine_name: str) -> None:
    base = """
        @prefix : <http://e.org/> .
        [?x, a, ?y] :- [?y, owl:sameAs, ?x], [:d, :r, ?z], ?x = :b .
        [?y, :p, ?y] :- [?y, :p, :c], not [?y, a, :C] .
    """
    more = "@prefix : <http://e.org/> . [?z, :r, :d] :- [?z, :p, :b] ."
    with pytest.raises(StratificationError):
        evermat.KnowledgeBase([base, more], engine=engine_name)
    kb = evermat.KnowledgeBase(base, engine=engine_name)
    with pytest.raises(StratificationError):
        kb.update(add_rules=more)
    assert len(kb.rules) == 2


def test_rows_of_large_cliques_are_made_as_they_are_read(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name, equality="rewrite")
    size = 1000
    kb.insert("same_as", [(0, f"n{at}") for at in range(1, size)])
    kb.insert("k", [(0, 0, 0, 0), ("a", "b", "c", "d")])
    found = kb.query("k(?v, ?x, ?y, ?z)")
    assert len(found) == kb.count("k") == size**4 + 1
    first = list(islice(found, 5000))
    assert len(set(first)) == len(first)
    assert "more" in repr(found)
    assert found.first(7).to_list() == first[:7]
    assert found.first(0).to_list() == []
    few = kb.query("k(?v, ?x, 0, n7)")
    assert len(set(few)) == len(few) == size**2


@pytest.mark.parametrize("mode", ["off", "rewrite"])
def test_a_computed_predicate_of_a_negated_triple_may_be_equality(
    engine_name: str, mode: Literal["off", "rewrite"]
) -> None:
    kb = evermat.KnowledgeBase(
        "r(?x) :- q(?x, ?name), ?p = min(?name, ?name), not [?x, ?p, ?x] .",
        engine=engine_name,
        equality=mode,
    )
    kb.insert("q", [(iri("a"), IRI(OWL)), (iri("a"), iri("p"))])
    assert kb.facts("r").to_list() == [(iri("a"),)]
    kb.delete("q", [(iri("a"), iri("p"))])
    # Every constant is equal to itself.
    assert kb.facts("r").to_list() == ([] if mode == "rewrite" else [(iri("a"),)])


@pytest.mark.parametrize("mode", ["auto", "axioms"])
def test_equality_of_triples_can_be_asked_for_by_its_other_name(
    engine_name: str, mode: Literal["auto", "axioms"]
) -> None:
    kb = evermat.KnowledgeBase(engine=engine_name, equality=mode)
    change = kb.insert("triple", [(iri("a"), IRI(OWL), iri("b"))])
    assert change.predicates
    assert all(len(change.added(name)) for name in change.predicates)
    assert set(kb.query("<http://e.org/a> ≈ ?x")) == {(iri("a"),), (iri("b"),)}
    assert kb.contains("same_as", (iri("b"), iri("a")))
    assert kb.count("same_as") == len(kb.facts("same_as")) == 5  # and sameAs itself


def test_counting_algorithms_are_refused() -> None:
    with pytest.raises(AlgorithmError, match="bf"):
        evermat.KnowledgeBase(equality="rewrite", algorithm="dred-c")
    with pytest.raises(RuntimeError, match="counters"):
        evermat.KnowledgeBase("p(a) . a ≈ b .").counters("p")


def test_plan_changes_nothing(engine_name: str) -> None:
    kb = evermat.KnowledgeBase("p(a) . q(b) . a ≈ b .", engine=engine_name)
    for algorithm in ("bf", "remat"):
        change = kb.plan(
            delete={"same_as": [("a", "b")]},
            add_rules="r(?x) :- p(?x) .",
            algorithm=algorithm,
        )
        assert set(change.removed("p")) == {("b",)}
        assert change.added("r").to_list() == [("a",)]
        assert kb.count("p") == 2


def test_rules_come_and_go(engine_name: str) -> None:
    rule = "?x ≈ ?y :- r(?z, ?x), r(?z, ?y) ."
    kb = evermat.KnowledgeBase("p(?x) :- r(?z, ?x) .", engine=engine_name)
    kb.insert("r", [(1, "a"), (1, "b"), (2, "c")])
    kb.update(add_rules=rule, algorithm="bf")
    assert kb.count("r") == 3
    assert len(kb.query("same_as(a, ?x)")) == 2
    kb.update(remove_rules=rule, algorithm="bf")
    assert len(kb.query("same_as(a, ?x)")) == 1
    assert set(kb.facts("p")) == {("a",), ("b",), ("c",)}


def test_owl_same_as_has_no_other_name(engine_name: str) -> None:
    same = evermat.IRI("http://www.w3.org/2002/07/owl#sameAs")
    kb = evermat.KnowledgeBase(equality="rewrite", engine=engine_name)
    facts = [(iri("x"), same, same), (iri("a"), iri("x"), iri("b"))]
    with pytest.raises(EqualityError, match="another name"):
        kb.load({"triple": facts})
    kb.load({"triple": facts[1:]})
    with pytest.raises(EqualityError, match="another name"):
        kb.insert("triple", [(same, same, iri("x"))])
    assert kb.count("triple") == 5
    kb.update(add_rules="[?x, owl:sameAs, ?y] :- [?x, <http://e.org/x>, ?y] .")
    assert len(kb.representatives()) == 2


def test_negated_triples_of_any_predicate(engine_name: str) -> None:
    rules = "oneway(?x, ?p) :- [?x, ?p, ?y], asked(?p), not [?y, ?p, ?x] ."
    kb = evermat.KnowledgeBase(rules, equality="rewrite", engine=engine_name)
    same = evermat.IRI("http://www.w3.org/2002/07/owl#sameAs")
    kb.load(
        {
            "asked": [(iri("p"),), (iri("q"),), (same,)],
            "triple": [
                (iri("a"), iri("p"), iri("b")),
                (iri("b"), iri("q"), iri("a")),
                (iri("c"), iri("p"), iri("d")),
            ],
        }
    )
    names = {(x, p) for x, p in (("a", "p"), ("b", "q"), ("c", "p"))}
    assert set(kb.facts("oneway")) == {(iri(x), iri(p)) for x, p in names}
    kb.insert("triple", [(iri("p"), same, iri("q")), (iri("c"), same, iri("d"))])
    assert kb.count("oneway") == 0
    kb.delete("triple", [(iri("c"), same, iri("d"))])
    assert set(kb.facts("oneway")) == {(iri("c"), iri("p")), (iri("c"), iri("q"))}
