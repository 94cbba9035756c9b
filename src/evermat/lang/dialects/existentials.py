"""Rules whose heads ask for individuals that need not be known.

`s(?x, !y) :- p(?x)` says that every `p` has an `s`. It becomes

    s(?x, ?y) :- p(?x), ?y = skolem("y-…", ?x) .

with a blank node that depends on the *frontier*: the variables that heads and body
share. This is the skolem chase. Its result has a homomorphism into that of the
restricted chase, which Nemo runs, and the other way round, so both have the same facts
over known individuals.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.lang.expressions import substitute_atom
from evermat.lang.syntax import (
    ANONYMOUS,
    Call,
    Condition,
    Rule,
    Term,
    Variable,
    atom_variables,
    rule_variables,
)
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from evermat.lang.syntax import Atom, Expression

MARK = "!"
"""The first character of an existential variable's name, as long as it is one."""


def with_skolem_terms(rule: Rule) -> Rule:
    """The rule with a skolem term for each existential variable of its heads."""
    in_heads: dict[str, Variable] = {}
    for head in rule.heads:
        for variable in atom_variables(head):
            in_heads.setdefault(variable.name, variable)
    existentials = [each for name, each in in_heads.items() if name.startswith(MARK)]
    if not existentials:
        return rule
    universal = [name for name in in_heads if name[0] != MARK and name != ANONYMOUS]
    frontier = [Variable(name) for name in universal]
    taken = {variable.name for variable in rule_variables(rule)}
    names: dict[str, Expression] = {}
    invented: list[Condition] = []
    for variable in existentials:
        name = _free_name(variable.name.removeprefix(MARK), taken)
        taken.add(name)
        names[variable.name] = Variable(name)
        term = Call("skolem", (_skolem_name(rule, variable), *frontier))
        equation = Call("=", (Variable(name), term))
        invented.append(Condition(equation, span=variable.span))
    heads: tuple[Atom, ...] = tuple(substitute_atom(head, names) for head in rule.heads)
    return replace(rule, heads=heads, body=(*rule.body, *invented))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _skolem_name(rule: Rule, variable: Variable) -> Term:
    """A name that tells the variables of all rules apart.

    It is made from the rule itself, so that it does not change when other rules come or
    go, and the same rule in two programs means the same individuals.
    """
    digest = hashlib.blake2b(str(rule).encode(), digest_size=8).hexdigest()
    name = f"{variable.name.removeprefix(MARK)}-{digest}"
    return Term(Constant(Kind.STRING, name))
