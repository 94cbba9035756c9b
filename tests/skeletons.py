"""Programs that are hard to maintain, with random facts and random updates.

`strategies` draws programs at random, and few of them are hard. Here the programs are
chosen by hand for what they make algorithms do, and only facts, updates and the rules
that are in force are random. Everything follows from a seed, and drawing is quick.
"""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

from evermat.lang.parser import parse_rules
from evermat.values import IRI, Constant, constant
from strategies import Scenario, Update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.lang.syntax import Rule
    from oracle import Fact

TEXTS = {
    "recursion with negation inside": """
        r(?x, ?y) :- e(?x, ?y), not c(?x) .
        r(?x, ?z) :- r(?x, ?y), e(?y, ?z), not f(?y, ?z) .
        f(?x, ?y) :- g(?x, ?y), not c(?y) .
        u(?x) :- c(?x), not r(?x, ?x) .
    """,
    "two negations in a recursive rule": """
        p(?y) :- p(?x), e(?x, ?y), not f(?x, ?y), not c(?y) .
        f(?x, ?y) :- g(?x, ?y) .
        c(?x) :- d(?x), not g(?x, ?x) .
    """,
    "nonlinear closure": """
        r(?x, ?y) :- e(?x, ?y) .
        r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
        s(?x) :- r(?x, ?x), not c(?x) .
    """,
    "three facts of one round": """
        p(?x) :- d(?x) .
        p(?z) :- p(?x), p(?y), t(?x, ?y, ?z) .
        q(?x) :- c(?x), not p(?x) .
    """,
    "chains with many ways round": """
        p(?x) :- d(?x) .
        p(?x) :- c(?x), not g(?x, ?x) .
        p(?y) :- p(?x), e(?x, ?y) .
        p(?y) :- p(?x), f(?x, ?y) .
    """,
    "mutual recursion": """
        p(?y) :- q(?x), e(?x, ?y) .
        q(?y) :- p(?x), f(?x, ?y) .
        q(?x) :- d(?x) .
        r(?x, ?y) :- p(?x), q(?y), not g(?x, ?y) .
    """,
    "symmetric and transitive": """
        r(?x, ?y) :- e(?x, ?y) .
        r(?y, ?x) :- r(?x, ?y) .
        r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
    """,
    "negation over recursion over negation": """
        a(?x) :- c(?x), not d(?x) .
        p(?x) :- a(?x) .
        p(?y) :- p(?x), e(?x, ?y) .
        q(?x) :- c(?x), not p(?x) .
        q(?y) :- q(?x), f(?x, ?y), not a(?y) .
        u(?x) :- d(?x), not q(?x) .
    """,
    "sums": """
        n(?y) :- n(?x), e(?x, ?z), ?x < 7, ?y = ?x + ?z .
        m(?x, ?y) :- n(?x), n(?y), ?x < ?y, not f(?x, ?y) .
    """,
    "properties and classes": """
        [?a, <sc>, ?c] :- [?a, <sc>, ?b], [?b, <sc>, ?c] .
        [?a, <sp>, ?c] :- [?a, <sp>, ?b], [?b, <sp>, ?c] .
        [?x, ?b, ?y] :- [?a, <sp>, ?b], [?x, ?a, ?y] .
        [?x, a, ?b] :- [?a, <sc>, ?b], [?x, a, ?a] .
        [?x, a, ?c] :- [?p, <dom>, ?c], [?x, ?p, ?y] .
    """,
    "some properties are derived and others are not": """
        [?x, <p>, ?z] :- [?x, <p>, ?y], [?y, ?q, ?z] .
        [?y, <q>, ?x] :- [?x, <p>, ?y], c(?x) .
        [?y, <sc>, ?x] :- [?x, <sp>, ?y] .
        odd(?x) :- [?x, ?any, ?y], not [?y, <q>, ?x] .
    """,
    "projected negation": """
        s(?x) :- c(?x), not e(?x, _) .
        p(?y) :- p(?x), e(?x, ?y), not g(?y, _) .
        p(?x) :- s(?x) .
    """,
}

PROGRAMS: dict[str, tuple[Rule, ...]] = {
    name: parse_rules(text) for name, text in TEXTS.items()
}

_TYPE = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_RESOURCES = [constant(IRI(name)) for name in ("p", "q", "C", "D", "x")]
_PROPERTIES = [constant(IRI(name)) for name in ("p", "q", "sc", "sp", "dom")]


def scenario(seed: int, *, updates: int = 4) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    program = PROGRAMS[chance.choice(list(PROGRAMS))]
    universe = possible_facts(program)
    density = chance.choice([0.15, 0.3, 0.5])
    given = {fact for fact in universe if chance.random() < density}
    rules = [rule for rule in program if chance.random() < 0.9]
    changes_rules = chance.random() < 0.4
    story = []
    present, current = set(given), list(rules)
    for _ in range(updates):
        update = change_facts(chance, universe, present)
        if changes_rules:
            update = change_rules(chance, update, program, current)
            gone = set(update.remove_rules)
            current = [rule for rule in current if rule not in gone]
            current += update.add_rules
        present = (present - update.delete) | update.insert
        story.append(update)
    return Scenario(tuple(rules), frozenset(given), tuple(story))


def half_checked() -> Scenario:
    """A search of B/F that ends early, and a fact it met that matters later.

    Hardly ever drawn: p(0) and p(1) only have each other and go in different rounds,
    p(2) is proved in between, and p(3) is met on the way but asked about afterwards.
    """
    rules = parse_rules("p(?x) :- s(?x) . p(?y) :- p(?x), e(?x, ?y) .")
    pairs = [(0, 1), (1, 0), (0, 2), (9, 2), (3, 2), (1, 3), (8, 3)]
    facts = {("e", (constant(x), constant(y))) for x, y in pairs}
    sources: set[Fact] = {("s", (constant(x),)) for x in (0, 8, 9)}
    update = Update(delete=frozenset({("s", (constant(0),))}))
    return Scenario(rules, frozenset(facts | sources), (update,))


def change_facts(
    chance: random.Random, universe: Sequence[Fact], present: set[Fact]
) -> Update:
    """An update of a few facts, most of which are there."""
    there = sorted(present, key=repr)
    some = chance.choice([1, 1, 2, 5])
    delete = set(chance.sample(there, min(some, len(there))))
    insert = set(chance.sample(universe, chance.choice([0, 0, 1, 2, 5])))
    if chance.random() < 0.2:
        delete |= set(chance.sample(universe, 2))
    if chance.random() < 0.2:
        insert |= set(chance.sample(sorted(delete, key=repr), min(1, len(delete))))
    return Update(frozenset(delete), frozenset(insert))


def change_rules(
    chance: random.Random,
    update: Update,
    program: Sequence[Rule],
    current: Sequence[Rule],
) -> Update:
    """The same update with rules that come and go."""
    removed = tuple(rule for rule in current if chance.random() < 0.2)
    absent = [rule for rule in program if rule not in current]
    added = tuple(rule for rule in absent if chance.random() < 0.6)
    return Update(update.delete, update.insert, removed, added)


def possible_facts(program: Sequence[Rule]) -> list[Fact]:
    """All facts that may be given: those of every predicate, derived ones as well."""
    arities = {
        atom.predicate: atom.arity
        for rule in program
        for atom in (*rule.heads, *rule.positive_atoms(), *rule.negated_atoms())
    }
    facts = ((name, row) for name in arities for row in _rows(name, arities[name]))
    return sorted(facts, key=repr)


def _rows(name: str, arity: int) -> Sequence[tuple[Constant, ...]]:
    if name == "triple":
        properties = [*_PROPERTIES, constant(_TYPE)]
        # Few of the many: no more than a program of this size can bear.
        return list(product(_RESOURCES[:4], properties, _RESOURCES))[::3]
    numbers = [constant(each) for each in (1, 2, 3, 4)]
    rows = list(product(numbers, repeat=arity))
    return rows if arity < 3 else rows[::3]  # wide relations are thinned
