"""The names that rules have for the arguments of a predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.lang.syntax import ANONYMOUS, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.lang.syntax import Atom, Rule


def names_in_atoms(rules: Iterable[Rule], predicate: str) -> set[tuple[str, ...]]:
    """The variables of each atom of a predicate that has nothing but variables.

    >>> from evermat.lang.parser import parse_rules
    >>> rules = parse_rules("adult(?n) :- person(?n, ?age), not person(?n, 7) .")
    >>> names_in_atoms(rules, "person")
    {('n', 'age')}
    """
    found = set()
    for rule in rules:
        for atom in (*rule.heads, *rule.positive_atoms(), *rule.negated_atoms()):
            if atom.predicate == predicate:
                names = variable_names(atom)
                if len(set(names)) == len(atom.arguments):
                    found.add(names)
    return found


def variable_names(atom: Atom) -> tuple[str, ...]:
    """The names of the variables among the arguments of an atom, in order."""
    return tuple(
        each.name
        for each in atom.arguments
        if isinstance(each, Variable) and each.name != ANONYMOUS
    )
