"""Programs whose facts have many derivations, and updates that take several at once.

Updates drawn without a look at the derivations mostly destroy one of a fact's instances
or none, so a counter that goes down by one where it should go down by three passes.
Here an update chooses a derived fact and takes away several of the explicit facts that
its instances need, or gives what they negate; the next one may bring some back.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import oracle
import skeletons
from evermat.lang.parser import parse_rules
from strategies import Scenario, Update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.lang.syntax import Rule
    from oracle import Fact, Instance

TEXTS = {
    "rules with many matches": """
        p(?x) :- e(?x, ?y) .
        p(?x) :- f(?x, ?y) .
        p(?y) :- e(?x, ?y), g(?x, ?y) .
        q(?x) :- p(?x), e(?x, ?y) .
        q(?x) :- f(?y, ?x) .
        s(?x, ?y) :- q(?x), p(?y), not g(?x, ?y) .
        go() :- p(?x) .
        go() :- f(?x, ?x) .
    """,
    "the same pairs by several rules": """
        r(?x, ?y) :- e(?x, ?y) .
        r(?x, ?y) :- f(?x, ?y) .
        r(?x, ?z) :- r(?x, ?y), e(?y, ?z) .
        r(?x, ?z) :- r(?x, ?y), f(?y, ?z) .
        p(?x) :- r(?x, _) .
        p(?x) :- e(?x, ?x), not g(?x, ?x) .
    """,
    "several things that must not hold": """
        a(?x) :- c(?x), not e(?x, ?x) .
        a(?x) :- c(?x), not f(?x, ?x) .
        a(?x) :- e(?x, ?y), not g(?y, ?x) .
        b(?x) :- a(?x), e(?x, ?y), not f(?x, ?y) .
        b(?y) :- b(?x), e(?x, ?y), not a(?y) .
        u(?x) :- c(?x), not b(?x) .
    """,
    "one fact in two places of a rule": """
        s(?x, ?z) :- e(?x, ?y), e(?y, ?z) .
        s(?x, ?y) :- e(?x, ?y), f(?y, ?x) .
        p(?x) :- s(?x, ?y), s(?y, ?x) .
        p(?y) :- p(?x), s(?x, ?y), e(?x, ?y) .
        u(?x) :- p(?x), not s(?x, ?x) .
    """,
}

PROGRAMS = {name: parse_rules(text) for name, text in TEXTS.items()}

RECURSIVE = parse_rules("""
    p(?x) :- c(?x) .
    p(?y) :- p(?x), e(?x, ?y) .
    p(?y) :- p(?x), f(?x, ?y) .
    p(?z) :- p(?x), p(?y), g(?x, ?z), e(?y, ?z) .
    q(?x) :- p(?x), e(?x, ?y), not g(?x, ?y) .
    q(?y) :- q(?x), f(?x, ?y), p(?y) .
""")
"""Facts with many recursive derivations, of which no closure takes care."""


def scenario(seed: int, *, updates: int = 4) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    own = chance.random() < 0.7
    programs = list((PROGRAMS if own else skeletons.PROGRAMS).values())
    return _scenario(chance, chance.choice(programs), updates)


def recursive_scenario(seed: int, *, updates: int = 4) -> Scenario:
    """The scenario of a seed, with recursive rules."""
    return _scenario(random.Random(seed), RECURSIVE, updates)  # noqa: S311  as above


def _scenario(
    chance: random.Random, program: tuple[Rule, ...], updates: int
) -> Scenario:
    universe = skeletons.possible_facts(program)
    density = chance.choice([0.3, 0.5, 0.7])
    present = {fact for fact in universe if chance.random() < density}
    facts = frozenset(present)
    story = []
    absent: set[Fact] = set()
    for _ in range(updates):
        delete, insert = _aimed(chance, program, present)
        returning = [fact for fact in sorted(absent, key=repr) if chance.random() < 0.4]
        insert |= set(returning)
        story.append(Update(frozenset(delete), frozenset(insert)))
        present = (present - delete) | insert
        absent = (absent | delete) - insert
    return Scenario(program, facts, tuple(story))


def _aimed(
    chance: random.Random, program: Sequence[Rule], present: set[Fact]
) -> tuple[set[Fact], set[Fact]]:
    """What to delete and insert so that a fact or two lose several derivations."""
    supported = _instances(program, present)
    several = [head for head, found in supported.items() if len(found) > 1]
    delete: set[Fact] = set()
    insert: set[Fact] = set()
    for head in chance.sample(several, min(len(several), chance.choice([1, 1, 2]))):
        found = supported[head]
        for each in chance.sample(found, chance.randint(2, len(found))):
            explicit = [fact for fact in each.positive if fact in present]
            if each.negative and chance.random() < 0.4:
                insert.add(chance.choice(each.negative))
            elif explicit:
                delete.add(chance.choice(explicit))
    if chance.random() < 0.2:
        insert |= set(chance.sample(sorted(delete, key=repr), min(1, len(delete))))
    return delete, insert


def _instances(
    program: Sequence[Rule], present: set[Fact]
) -> dict[Fact, list[Instance]]:
    """All rule instances, by the fact that they derive."""
    model = oracle.materialise(program, present).facts
    found: dict[Fact, list[Instance]] = {}
    for rule in oracle.distinct(program):
        for each in oracle.instances(rule, model, model):
            found.setdefault(each.head, []).append(each)
    # Sets have another order in every process, and scenarios follow from their seeds.
    return {head: sorted(found[head], key=repr) for head in sorted(found, key=repr)}
