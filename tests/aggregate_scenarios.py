"""Programs with aggregates that are hard to maintain, with random facts and updates.

Aggregates stand over given and derived facts, on top of each other, beside recursion
and negation, several in a rule; groups become empty and come back, values are tied,
negative, decimals and doubles.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

from evermat.lang.parser import parse_rules
from evermat.values import constant
from skeletons import change_facts, change_rules
from strategies import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.lang.syntax import Rule
    from oracle import Fact

TEXTS = {
    "each function, of given facts": """
        count(?x, ?n) :- ?n = count{ ?v : p(?x, ?v) } .
        sum(?x, ?n) :- ?n = sum{ ?v, ?y : q(?x, ?y, ?v) } .
        once(?x, ?n) :- ?n = sum{ ?v : q(?x, ?y, ?v) } .
        kinds(?x, ?n) :- ?n = count{ ?v : q(?x, ?y, ?v) } .
        least(?x, ?n) :- ?n = min{ ?v, ?y : q(?x, ?y, ?v) } .
        most(?x, ?n) :- ?n = max{ ?v, ?y : q(?x, ?y, ?v) } .
        average(?x, ?n) :- ?n = avg{ ?v, ?y : q(?x, ?y, ?v) } .
        all(?x, ?n) :- ?n = list{ ?v : q(?x, _, ?v) } .
        one(?x, ?n) :- ?n = any{ ?y : q(?x, ?y, _) } .
    """,
    "empty groups": """
        n(?x, ?n) :- c(?x), ?n = count{ ?v : p(?x, ?v) } .
        s(?x, ?n) :- c(?x), ?n = sum{ ?v : p(?x, ?v), not d(?v) } .
        b(?x, ?n, ?m) :- c(?x), ?n = sum{ ?v : p(?x, ?v) }, ?m = count{ ?y : d(?y) } .
        none(?x) :- c(?x), count{ ?v : p(?x, ?v) } = 0 .
        all(?n) :- ?n = count{ ?x : c(?x) } .
    """,
    "several in a rule": """
        r(?x, ?n, ?m) :- ?n = sum{ ?v, ?y : q(?x, ?y, ?v) },
            ?m = max{ ?v : p(?x, ?v) } .
        r(?x, ?n, ?n) :- c(?x), ?n = count{ ?y : q(?x, ?y, _) },
            ?n = count{ ?v : p(?x, ?v) } .
        more(?x) :- sum{ ?v : p(?x, ?v) } > sum{ ?v, ?y : q(?x, ?y, ?v) } .
    """,
    "in strata": """
        size(?x, ?n) :- ?n = count{ ?y : e(?x, ?y) } .
        big(?x) :- size(?x, ?n), ?n > 1 .
        weight(?x, ?w) :- big(?x), ?w = sum{ ?n, ?y : e(?x, ?y), size(?y, ?n) } .
        best(?m) :- ?m = max{ ?w, ?x : weight(?x, ?w) } .
        top(?x) :- best(?m), weight(?x, ?m), not d(?x) .
        sizes(?l) :- ?l = list{ ?n : size(_, ?n) } .
    """,
    "over recursion": """
        r(?x, ?y) :- e(?x, ?y) .
        r(?x, ?z) :- r(?x, ?y), e(?y, ?z) .
        n(?x, ?n) :- c(?x), ?n = count{ ?y : r(?x, ?y) } .
        s(?x, ?n) :- ?n = sum{ ?v, ?y : r(?x, ?y), p(?y, ?v) } .
        t(?x, ?y) :- n(?x, ?n), n(?y, ?n) .
        t(?x, ?z) :- t(?x, ?y), e(?y, ?z) .
        most(?n) :- ?n = max{ ?k : s(_, ?k) } .
    """,
    "inside of each other": """
        least(?n) :- ?n = min{ ?m : c(?x), ?m = count{ ?y : e(?x, ?y) } } .
        odd(?x, ?k) :- ?k = sum{ ?m * ?v, ?y : e(?x, ?y), p(?y, ?v),
            ?m = max{ ?w : p(?y, ?w) } } .
    """,
    "bound from outside": """
        below(?x, ?n) :- c(?x), ?n = count{ ?y, ?v : p(?y, ?v), ?v < ?x } .
        below(?x, ?n) :- d(?x), ?k = ?x + 1, ?n = sum{ ?v : p(?k, ?v) } .
        same(?n) :- ?n = count{ ?v : p(?n, ?v) } .
        fixed(?n) :- ?n = sum{ ?v, 1 : p(2, ?v), not d(?v) } .
    """,
    "joined through derived facts": """
        p(?x, ?v) :- q(?x, _, ?v) .
        p(?x, ?x) :- d(?x) .
        s(?x, ?n) :- ?n = sum{ ?v : p(?x, ?v) } .
        m(?x, ?n) :- ?n = min{ ?v : p(?x, ?v) } .
        up(?x, ?y) :- s(?x, ?n), s(?y, ?m), ?n < ?m .
        u(?x) :- d(?x), not m(?x, _) .
    """,
}

MONOTONE_TEXTS = {
    "shortest paths": """
        way(?y, 0) :- c(?y) .
        way(?y, ?n) :- dist(?x, ?a), q(?x, ?y, ?w), not d(?y), ?n = ?a + ?w .
        dist(?y, ?n) :- ?n = min{ ?a : way(?y, ?a) } .
        far(?n) :- ?n = max{ ?a, ?x : dist(?x, ?a) } .
    """,
    "shortest paths in one rule": """
        dist(?y, 1) :- c(?y) .
        dist(?y, ?n) :- ?n = min{ ?a + ?w, ?x : dist(?x, ?a), q(?x, ?y, ?w) } .
        near(?x) :- dist(?x, ?n), ?n < 3 .
    """,
    "widest paths": """
        way(?y, 9) :- c(?y) .
        way(?y, min(?a, ?w)) :- wide(?x, ?a), q(?x, ?y, ?w) .
        wide(?y, ?n) :- ?n = max{ ?a : way(?y, ?a) } .
        reach(?x, ?y) :- wide(?x, ?a), ?a >= 2, e(?x, ?y) .
        reach(?x, ?z) :- reach(?x, ?y), e(?y, ?z) .
        low(?x) :- c(?x), not wide(?x, 9) .
    """,
    "company control": """
        controls(?x, ?y) :- sum{ ?s, ?z : owns(?x, ?z, ?y, ?s) } > 3 .
        owns(?x, ?x, ?y, ?s) :- q(?x, ?y, ?s) .
        owns(?x, ?z, ?y, ?s) :- controls(?x, ?z), q(?z, ?y, ?s) .
        free(?y) :- c(?y), not controls(_, ?y) .
    """,
    "a threshold of neighbours": """
        ill(?x) :- c(?x) .
        ill(?x) :- count{ ?y : e(?x, ?y), ill(?y) } >= 2, not d(?x) .
        ill(?y) :- ill(?x), p(?x, ?y) .
        number(?n) :- ?n = count{ ?x : ill(?x) } .
    """,
}
"""Recursion through aggregates."""

PROGRAMS: dict[str, tuple[Rule, ...]] = {
    name: parse_rules(text) for name, text in TEXTS.items()
}
MONOTONE = {name: parse_rules(text) for name, text in MONOTONE_TEXTS.items()}

_ARITIES = {"c": 1, "d": 1, "e": 2, "p": 2, "q": 3}
_NUMBERS = [1, 2, 3, -1, 0]
_MIXED = [Decimal("0.1"), Decimal("1.0"), 0.1, 1e16, -1e16, 10**30]


def scenario(seed: int, *, updates: int = 4) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    names = list(PROGRAMS)
    program = PROGRAMS[names[seed % len(names)]]
    values = [*_NUMBERS, *_MIXED] if chance.random() < 0.4 else _NUMBERS
    return _story(chance, program, values, updates)


def monotone_scenario(seed: int, *, updates: int = 4) -> Scenario:
    """The scenario of a seed, with recursion through aggregates."""
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    names = list(MONOTONE)
    program = MONOTONE[names[seed % len(names)]]
    return _story(chance, program, [0, 1, 2, 3], updates)


def _story(
    chance: random.Random,
    program: Sequence[Rule],
    values: Sequence[object],
    updates: int,
) -> Scenario:
    universe = _possible_facts(chance, values)
    density = chance.choice([0.1, 0.3, 0.6])
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


def _possible_facts(chance: random.Random, values: Sequence[object]) -> list[Fact]:
    groups = [constant(each) for each in (1, 2, 3)]
    numbers = [constant(each) for each in values]
    facts: set[Fact] = set()
    for name, arity in _ARITIES.items():
        for _ in range(4 if arity == 1 else 14):
            row = [chance.choice(groups) for _ in range(arity)]
            if name in {"p", "q"}:
                row[-1] = chance.choice(numbers)
            facts.add((name, tuple(row)))
    return sorted(facts, key=repr)
