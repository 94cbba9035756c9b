"""Programs of rules that are the same but for constants, with facts and updates.

Such rules are folded into one query, joined with a table of their constants. Templates
are drawn at random, with variables that occur several times, negation, comparisons and
recursion; then each is filled in with different constants. Everything follows from a
seed, and drawing is quick.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.lang.syntax import Atom, Call, Condition, Negation, Rule, Term, Variable
from evermat.values import constant
from strategies import Scenario, Update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracle import Fact

LEVELS: tuple[dict[str, int], ...] = (
    {"d": 1, "e": 2, "t": 3},
    {"p": 1, "r": 2},
    {"q": 2, "v": 3},
    {"u": 1, "w": 2},
)
"""Predicates and their arities; rules read their own level and those below."""

ARITIES = {name: arity for level in LEVELS for name, arity in level.items()}
VALUES = 5
VARIABLES = ("x", "y", "z")
FAMILY_SIZES = (1, 2, 2, 3, 4, 10)
"""With up to eight rules a family is matched differently from a larger one."""

HOLE = Term(constant("?"))
"""Stands in a template where its rules have a constant."""


def scenario_of(seed: int, updates: int = 5) -> Scenario:
    """A program of folded rules, some facts, and small updates."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    rules: dict[Rule, None] = {}
    for level in range(1, len(LEVELS)):
        for _ in range(random_.randrange(1, 4)):
            template = _template(random_, level)
            rules.update(
                dict.fromkeys(
                    _filled(random_, template)
                    for _ in range(random_.choice(FAMILY_SIZES))
                )
            )
    names = sorted({atom.predicate for rule in rules for atom in _atoms(rule)})
    facts = _facts(random_, names, random_.randrange(6, 30))
    changes = []
    known = facts
    for _ in range(updates):
        gone = random_.sample(sorted(known, key=repr), min(len(known), 3))
        change = Update(
            frozenset(gone[: random_.randrange(4)]),
            _facts(random_, names, random_.randrange(4)),
        )
        known = (known - change.delete) | change.insert
        changes.append(change)
    return Scenario(tuple(rules), facts, tuple(changes))


def _atoms(rule: Rule) -> list[Atom]:
    return [rule.head, *rule.positive_atoms(), *rule.negated_atoms()]


def _facts(random_: random.Random, names: Sequence[str], count: int) -> frozenset[Fact]:
    """Most of them given ones, some of predicates that rules derive as well."""
    weights = [8 if name in LEVELS[0] else 1 for name in names]
    return frozenset(
        (name, tuple(constant(random_.randrange(VALUES)) for _ in range(ARITIES[name])))
        for name in random_.choices(names, weights, k=count)
    )


# ------------------------------------------------------------------------- templates


def _template(random_: random.Random, level: int) -> Rule:
    below = [name for each in LEVELS[:level] for name in each]
    here = [*below, *LEVELS[level], *LEVELS[level - 1]]
    body = [_atom(random_, here)]
    for _ in range(random_.choice((0, 1, 1, 2))):
        body.append(_joined(random_, here, _variables(body)))
    bound = _variables(body)
    head = _atom(random_, [*LEVELS[level]], bound)
    rest: list[Negation | Condition] = []
    if random_.random() < 0.4:
        rest.append(Negation(_atom(random_, below, bound)))
    if len(bound) > 1 and random_.random() < 0.3:
        sides = tuple(Variable(name) for name in random_.sample(bound, 2))
        rest.append(Condition(Call(random_.choice(("=", "!=")), sides)))
    return Rule((head,), (*body, *rest))


def _variables(atoms: Sequence[Atom]) -> list[str]:
    arguments = (each for atom in atoms for each in atom.arguments)
    return sorted({each.name for each in arguments if isinstance(each, Variable)})


def _joined(random_: random.Random, names: Sequence[str], bound: Sequence[str]) -> Atom:
    """An atom that has a variable in common with others; few rules form all pairs."""
    atom = _atom(random_, names)
    while bound and not set(bound) & set(_variables([atom])):
        atom = _atom(random_, names)
    return atom


def _atom(
    random_: random.Random,
    names: Sequence[str],
    variables: Sequence[str] = VARIABLES,
) -> Atom:
    """An atom with variables and holes."""
    name = random_.choice(names)
    arguments = tuple(
        Variable(random_.choice(variables))
        if variables and random_.random() < 0.7
        else HOLE
        for _ in range(ARITIES[name])
    )
    return Atom(name, arguments)


def _filled(random_: random.Random, template: Rule) -> Rule:
    """A template with a constant in each hole."""

    def filled(atom: Atom) -> Atom:
        arguments = tuple(
            Term(constant(random_.randrange(VALUES))) if each == HOLE else each
            for each in atom.arguments
        )
        return replace(atom, arguments=arguments)

    body = tuple(
        filled(each)
        if isinstance(each, Atom)
        else Negation(filled(each.atom))
        if isinstance(each, Negation)
        else each
        for each in template.body
    )
    return Rule((filled(template.head),), body)
