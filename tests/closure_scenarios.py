"""Random programs that are rich in closures.

Several closures in one stratum, feeding each other and ordinary rules; negation above
them; facts given on closed relations; and rules that come and go, so that closures are
made, destroyed, written out, or change from one sort to another.

One scenario in three is *entangled*: few relations, in which most facts that closures
start from are derived by recursive rules, with the help of the closures. Such facts are
overdeleted and come back, or are looked into before.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import oracle
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import Atom
from evermat.values import IRI, constant
from strategies import Scenario, Update

if TYPE_CHECKING:
    from evermat.lang.syntax import Rule
    from oracle import Fact

CLOSURES = """
    r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
    s(?x, ?z) :- s(?y, ?z), s(?x, ?y) .
    s(?y, ?x) :- s(?x, ?y) .
    q(?x, ?z) :- q(?x, ?y), e(?y, ?z) .
    l(?x, ?z) :- e(?x, ?y), l(?y, ?z) .
    q(?x, ?z) :- q(?x, ?y), r(?y, ?z) .
    r(?x, ?x) :- r(?x, _) .
    r(?y, ?y) :- r(_, ?y) .
    [?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <p>, ?z] .
    [?x, <q>, ?y] :- [?y, <q>, ?x] .
    [?x, <q>, ?z] :- [?x, <q>, ?y], [?y, <q>, ?z] .
    [?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <s>, ?z] .
    t(?x, k, ?z) :- t(?x, k, ?y), t(?y, k, ?z) .
"""

OTHERS = """
    r(?x, ?y) :- e(?x, ?y) .
    s(?x, ?y) :- e(?x, ?y) .
    q(?x, ?y) :- e(?x, ?y) .
    l(?x, ?y) :- e(?x, ?y) .
    q(?x, ?y) :- a(?x), e(?y, ?x) .
    r(?x, ?y) :- s(?x, ?y), a(?x) .
    s(?x, ?y) :- r(?x, ?y), b(?y) .
    e(?x, ?y) :- l(?y, ?x), a(?x) .
    r(?x, ?y) :- r(?x, y1), e(y2, ?y) .
    r(?x, y3) :- r(?x, y2) .
    r(?x, ?z) :- r(?x, y1), f(?x, ?z) .
    b(?x) :- r(?x, ?x) .
    a(?y) :- a(?x), q(?x, ?y) .
    [?x, <p>, ?y] :- r(?x, ?y) .
    s(?x, ?y) :- [?x, <q>, ?y] .
    [?x, <q>, ?y] :- [?x, <p>, ?y], a(?y) .
    [?x, <p>, ?y] :- [?x, <q>, ?y], b(?x) .
    t(?x, k, ?y) :- [?x, <p>, ?y] .
    [?y, <s>, ?x] :- t(?x, k, ?y) .
    n(?x) :- node(?x), not r(?x, ?x) .
    n(?x) :- node(?x), not s(?x, _) .
    n(?y) :- q(?x, ?y), not l(?x, ?y) .
    n(?x) :- t(?x, k, ?x) .
"""

ENTANGLED = """
    r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
    r(?x, ?z) :- r(?x, y1), f(?x, ?z) .
"""
"""Of these, entangled programs have both to begin with."""


def _predicates(rule: Rule) -> set[str]:
    """The relations of a rule, those of negated atoms apart."""
    atoms = [*rule.heads, *(each for each in rule.body if isinstance(each, Atom))]
    return {atom.predicate for atom in atoms}


_ENTANGLED = {"r", "s", "e", "f", "a", "b"}
_NODES = ["y1", "y2", "y3", "y4", "y5", "y6"]
_RULES = tuple(list(parse_rules(text)) for text in (CLOSURES, OTHERS))
_ENTANGLED_RULES = tuple(
    [rule for rule in rules if _ENTANGLED.issuperset(_predicates(rule))]
    for rules in _RULES
)
_FACTS = ["e", "e", "e", "r", "s", "q", "l", "f", "a", "b", "T", "t"]
_ENTANGLED_FACTS = ["e", "f", "f", "f", "f", "r", "r", "r", "to y1", "to y1", "s"]


def closure_scenario(seed: int, *, change_rules: bool, updates: int = 3) -> Scenario:
    """A program, its facts and some updates, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  repeatable on purpose
    is_entangled = seed % 3 == 0
    rules = _ENTANGLED_RULES if is_entangled else _RULES
    names = _ENTANGLED_FACTS if is_entangled else _FACTS
    first = list(parse_rules(ENTANGLED)) if is_entangled else []
    current = _add(chance, rules, first, chance.randint(1, 4), chance.randint(1, 6))
    program = tuple(current)
    present = {_fact(chance, names) for _ in range(chance.choice([3, 8, 14]))}
    facts = frozenset(present)
    steps = []
    for _ in range(updates):
        there = sorted(present, key=repr)
        delete = set(chance.sample(there, min(len(there), chance.randint(0, 3))))
        insert = {_fact(chance, names) for _ in range(chance.randint(0, 3))}
        removed: list[Rule] = []
        added: list[Rule] = []
        if change_rules and chance.random() < 0.7:
            removed = [rule for rule in current if chance.random() < 0.25]
            kept = [rule for rule in current if rule not in removed]
            grown = _add(chance, rules, [*kept, *removed], 1, 1)
            added = [rule for rule in grown if rule not in kept and rule not in removed]
            current = [*kept, *added]
        present = (present - delete) | insert
        steps.append(
            Update(frozenset(delete), frozenset(insert), tuple(removed), tuple(added))
        )
    return Scenario(program, facts, tuple(steps))


def _add(
    chance: random.Random,
    rules: tuple[list[Rule], ...],
    chosen: list[Rule],
    *numbers: int,
) -> list[Rule]:
    """Some more rules, so many closures and so many others, that can stand together."""
    wanted = [
        rule
        for some, number in zip(rules, numbers, strict=True)
        for rule in chance.choices(some, k=number)
    ]
    chosen = list(chosen)
    for rule in wanted:
        if rule not in chosen and oracle.is_stratified([*chosen, rule]):
            chosen.append(rule)
    return chosen


def _fact(chance: random.Random, names: list[str]) -> Fact:
    predicate = chance.choice(names)
    x, y = chance.choice(_NODES), chance.choice(_NODES)
    match predicate:
        case "to y1":
            return "r", (constant(x), constant("y1"))
        case "a" | "b":
            return predicate, (constant(x),)
        case "T":
            name = constant(IRI(chance.choice("pqs")))
            return "triple", (constant(x), name, constant(y))
        case "t":
            middle = chance.choice(["k", "k", "m"])
            return predicate, (constant(x), constant(middle), constant(y))
        case _:
            return predicate, (constant(x), constant(y))


def second_paths() -> Scenario:
    """A path is lost, and another one leads through a fact that a rule derives."""
    return _story(
        "r(y2, y1) f(y2, y3) r(y3, y4) r(y2, y5) r(y5, y4)", ("r(y2, y5)", "")
    )


def lost_start() -> Scenario:
    """A fact loses the rule that derived it and the path that led there at once."""
    return _story("r(y2, y1) f(y2, y3)", ("", "r(y1, y3)"), ("r(y2, y1)", ""))


def lost_loops() -> Scenario:
    """A fact goes with a path to its end, and its loops have to go with it."""
    return _story(
        "r(y2, y1)",
        ("r(y2, y1)", ""),
        also="r(?x, ?x) :- r(?x, _) . r(?y, ?y) :- r(_, ?y) . r(?x, y3) :- r(?x, y2) .",
    )


def _story(facts: str, *updates: tuple[str, str], also: str = "") -> Scenario:
    steps = [Update(_facts(less), _facts(more), (), ()) for less, more in updates]
    rules = tuple(parse_rules(ENTANGLED + also + "seen(?y) :- r(y2, ?y) ."))
    return Scenario(rules, _facts(facts), tuple(steps))


def _facts(text: str) -> frozenset[Fact]:
    atoms = [part.strip(" (") for part in text.split(")") if part.strip()]
    return frozenset(
        (name, tuple(constant(value.strip()) for value in values.split(",")))
        for name, values in (atom.split("(") for atom in atoms)
    )
