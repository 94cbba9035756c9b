"""Random programs that compute, over numbers at which representations end.

Engines work on a whole column of numbers in one way or another, by what is in it. So a
scenario has numbers of one sort (small integers, integers of any size, doubles), or of
all sorts. Numbers are related to each other, so that results are known numbers, are
joined, negated and solved for, and rules are run from head to body as well.

Every computation has a value, and depths are limited, so that models are finite.
"""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

from boundary_numbers import (
    BOUNDARIES,
    DECIMALS,
    DOUBLES,
    INTEGERS,
    ROOTS,
    SMALL,
    related_integers,
    related_numbers,
)
from evermat.lang.parser import parse_rules
from evermat.values import constant, term_text
from strategies import Scenario, Update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.values import Constant
    from oracle import Fact

LARGEST_ID = 2**30 - 2
DEPTH = 2
"""How many steps lead from given facts to derived ones at most."""

NONRECURSIVE = (
    "v(?x, ?y, ?z) :- n(?x), n(?y), ?z = {expression} .",
    "v(?x, ?x, ?z) :- k(?x, ?y), ?z = {expression} .",
    "seen(?z) :- n(?x), k(?x, ?y), ?z = {expression} .",
    "seen({expression}) :- k(?x, ?y), n(?y) .",
    "hit(?x, ?y) :- n(?x), n(?y), n({expression}) .",
    "hit(?x, ?y) :- k(?x, ?y), seen({expression}) .",
    "miss(?x, ?y) :- k(?x, ?y), not n({expression}) .",
    "miss(?x, ?y) :- n(?x), n(?y), ?z = {expression}, not k(?x, ?z) .",
    "below(?x, ?y) :- n(?x), n(?y), {expression} {comparison} {other} .",
    "below(?x, ?y) :- k(?x, ?y), ?x {comparison} ?y .",
    "below(?x, {constant}) :- n(?x), ?x {comparison} {constant} .",
    "u(?x) :- n(?x), not below(?x, ?x) .",
    "u(?x) :- k(?x, ?y), not hit(?x, ?y), ?y {comparison} {constant} .",
    "w(?x, str(?x), length(str(?x))) :- n(?x) .",
    'w(?x, concat(?x, "/", ?y), 1) :- k(?x, ?y) .',
    'w(?x, substr(str(?x), 2, 9), 2) :- n(?x), contains(str(?x), "4") .',
    'w(?x, upper(str(?x)), 3) :- n(?x), regex(str(?x), "^-?[1-4]") .',
    'w(?x, lower(str(?x)), 4) :- n(?x), starts_with(str(?x), "-") .',
    'w(?x, datatype(?y), 5) :- k(?x, ?y), ends_with(str(?y), "8") .',
    'w(?x, skolem("s", ?x, ?y), language(?y)) :- k(?x, ?y) .',
    "c(?x, double(?x)) :- n(?x) .",
    "c(?x, int(?x)) :- n(?x) .",
    "c(?x, int(double(?x))) :- n(?x) .",
    "c(?x, double(str(?x))) :- n(?x) .",
    "c(?x, abs(?x)) :- n(?x), abs(?x) >= {constant} .",
    "c(?x, - ?x) :- n(?x), - ?x {comparison} {constant} .",
    "k(?x, ?z) :- n(?x), to(?x, ?y), ?z = ?x + ?y .",
)

RECURSIVE = (
    # A fact is one more step away, and a number further: both are solved for.
    "m(?i + 1, ?z) :- m(?i, ?x), step(?i, ?y), ?z = ?x {sign} ?y .",
    "m(?j, ?z) :- m(?i, ?x), step(?i, ?y), ?j = ?i + 1, ?z = ?y - ?x .",
    "m(?i + 1, ?x * ?y) :- m(?i, ?x), step(?i, ?y) .",
    "m(?i + 1, ?z) :- m(?i, ?x), step(?i, ?y), ?z = {extreme}(?x, ?y) .",
    "m(?i + 1, ?z) :- m(?i, ?x), step(?i, _), ?z = ?x {sign} {constant} .",
    "m(?i + 1, ?z) :- m(?i, ?x), step(?i, _), ?z = {constant} - ?x .",
    "d(?y, ?z) :- d(?x, ?a), edge(?x, ?y, ?b), ?z = ?a {sign} ?b .",
    "d(?y, ?z) :- d(?x, ?a), edge(?x, ?y, ?b), ?z = ?b - ?a, not n(?z) .",
    "d(?y, ?z) :- d(?x, ?a), n(?c), edge(?x, ?y, _), ?z = ?a - ?c .",
    "d(?y, ?b) :- d(?x, ?a), edge(?x, ?y, ?b), ?a {comparison} ?b .",
    "d(0, ?x) :- n(?x) .",
    "m(0, ?x) :- n(?x) .",
    "seen(?z) :- d(?x, ?z), not m(?x, ?z) .",
    "hit(?x, ?z) :- m(1, ?x), d(1, ?z), ?x {comparison} ?z .",
)


UNITS = (
    *(1, 2**28, 2**28, 2**29 - 1, 2**29, 2**29, 2**30 - 1),
    *(2**31, 2**52 + 1, 2**61, 2**63),
)
"""Numbers whose small multiples are on both sides of a boundary."""

PATHS = """
    d(?x, ?a) :- s(?x, ?a) .
    d(?y, ?z) :- d(?x, ?a), edge(?x, ?y, ?b), ?z = ?a {sign} ?b .
    d(?y, ?z) :- d(?x, ?a), link(?x, ?y), ?z = {constant} - ?a .
    far(?x, ?a) :- d(?x, ?a), not s(?x, ?a), ?a {comparison} {constant} .
"""
"""Lengths of paths that come about in several ways, being multiples of one number."""


def scenario(seed: int, *, updates: int = 3) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    return (_paths if seed % 3 == 0 else _mixture)(chance, updates)


def _paths(chance: random.Random, updates: int) -> Scenario:
    """Facts that lose a derivation and have another, found from head to body."""
    unit = chance.choice(UNITS)
    numbers = [constant(unit * factor) for factor in (-3, -2, -1, 0, 1, 2, 3)]
    nodes = [constant(node) for node in range(5)]
    edges = [(x, y) for at, x in enumerate(nodes) for y in nodes[at + 1 :]]
    universe: list[Fact] = [
        *(("s", (node, number)) for node in nodes[:2] for number in numbers),
        *(("edge", (*pair, number)) for pair in edges for number in numbers),
        *(("link", pair) for pair in edges),
    ]
    rules = parse_rules(_filled(chance, PATHS, numbers))
    present = set(chance.sample(universe, chance.choice((12, 20, 28))))
    facts = frozenset(present)
    story = []
    for _ in range(updates):
        there = sorted(present, key=repr)
        delete = frozenset(chance.sample(there, min(len(there), chance.randint(1, 6))))
        insert = frozenset(chance.sample(universe, chance.choice((0, 1, 3))))
        story.append(Update(delete, insert))
        present = (present - delete) | insert
    return Scenario(rules, facts, tuple(story))


def _mixture(chance: random.Random, updates: int) -> Scenario:
    """Rules of all sorts, over numbers of one sort or of several."""
    numbers = [constant(each) for each in _universe(chance)]
    texts = [
        *chance.sample(NONRECURSIVE, chance.randrange(3, 8)),
        *chance.sample(RECURSIVE, chance.randrange(0, 5)),
    ]
    rules = parse_rules("\n".join(_filled(chance, text, numbers) for text in texts))
    present = {_fact(chance, numbers) for _ in range(chance.choice([8, 14, 20]))}
    facts = frozenset(present)
    story = []
    for _ in range(updates):
        there = sorted(present, key=repr)
        size = min(len(there), chance.choice([0, 1, 2, 4, 8]))
        delete = frozenset(chance.sample(there, size))
        insert = {_fact(chance, numbers) for _ in range(chance.choice([0, 1, 2, 5]))}
        story.append(Update(delete, frozenset(insert)))
        present = (present - delete) | insert
    return Scenario(tuple(dict.fromkeys(rules)), facts, tuple(story))


def _universe(chance: random.Random) -> Sequence[object]:
    """Some numbers, which an engine may treat alike, or must not."""
    match chance.choice(("ids", "ids", "ids", "any", "near", "doubles", "mixed")):
        case "ids":
            inside = [each for each in INTEGERS if abs(each) <= LARGEST_ID]
            numbers = chance.sample([*inside, *ROOTS, *SMALL], 4)
            related = [a - b for a, b in product(numbers, numbers)]
            return [
                *numbers,
                *(each for each in related[1:4] if abs(each) <= LARGEST_ID),
            ]
        case "any":
            return related_integers(chance, 6)
        case "near":
            number = chance.choice(BOUNDARIES) * chance.choice((1, -1))
            return [number + step for step in (-1, 0, 1, 2)]
        case "doubles":
            return chance.sample(DOUBLES[:-1], 5)  # else some results are no numbers
        case _:
            return [*related_numbers(chance, 4), chance.choice(DECIMALS)]


# ------------------------------------------------------------------------- rules


def _filled(chance: random.Random, text: str, numbers: Sequence[Constant]) -> str:
    return text.format(
        expression=_expression(chance, numbers, 2),
        other=_expression(chance, numbers, 1),
        comparison=chance.choice(("=", "!=", "<", "<=", ">", ">=")),
        constant=_constant(chance, numbers),
        sign=chance.choice("+-"),
        extreme=chance.choice(("min", "max")),
    )


def _constant(chance: random.Random, numbers: Sequence[Constant]) -> str:
    known = chance.choice([*numbers, constant(chance.choice(INTEGERS))])
    return term_text(known.kind, known.text)


def _expression(chance: random.Random, numbers: Sequence[Constant], depth: int) -> str:
    """An expression over ?x and ?y that has a value whatever numbers they are."""
    if depth == 0:
        return chance.choice(("?x", "?y", "?x", "?y", _constant(chance, numbers)))
    left = _expression(chance, numbers, chance.randrange(depth))
    right = _expression(chance, numbers, chance.randrange(depth))
    match chance.choice(("+", "-", "*", "*", "/", "%", "function", "unary")):
        case "/" | "%" as operator:
            return f"({left} {operator} {_divisor(chance, numbers)})"
        case "function":
            return f"{chance.choice(('min', 'max'))}({left}, {right})"
        case "unary":
            return f"{chance.choice(('abs', '-'))}({left})"
        case operator:
            return f"({left} {operator} {right})"


def _divisor(chance: random.Random, numbers: Sequence[Constant]) -> str:
    """A number that is not zero, not even as a double."""
    divisors = [each for each in numbers if float(each.text)]
    known = chance.choice(
        [*divisors, constant(chance.choice((2, -3, 2**31, -(2**64))))]
    )
    return term_text(known.kind, known.text)


# ------------------------------------------------------------------------- facts


def _fact(chance: random.Random, numbers: Sequence[Constant]) -> Fact:
    name = chance.choice(("n", "n", "n", "k", "k", "step", "m", "d", "edge", "to"))
    levels = [constant(level) for level in range(DEPTH + 1)]
    match name:
        case "n":
            return name, (chance.choice(numbers),)
        case "step":
            return name, (chance.choice(levels[:DEPTH]), chance.choice(numbers))
        case "m" | "d":
            return name, (chance.choice(levels[:2]), chance.choice(numbers))
        case "edge":
            # Upwards only, so that there is no cycle.
            start = chance.randrange(DEPTH)
            end = chance.randrange(start + 1, DEPTH + 1)
            return name, (levels[start], levels[end], chance.choice(numbers))
        case _:
            return name, (chance.choice(numbers), chance.choice(numbers))
