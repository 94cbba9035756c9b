"""What explanations must be, worked out from the oracle's rule instances.

The checker shares nothing with the search but the definition: every step is an instance
of a rule of the program, leaves were given, what must be absent is absent, and of all
proofs it is the canonical one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Literal

import oracle
from engine_facts import rows_of
from evermat import KnowledgeBase
from evermat.explain import search
from evermat.functions import FUNCTIONS
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import Call, Term, Variable, is_auxiliary
from evermat.values import Constant, Kind, constant
from strategies import Scenario, Update
from tracked import model_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pytest

    from evermat.explain.explanation import Derivation, Explanation
    from evermat.lang.syntax import Atom, Expression, Rule
    from oracle import Fact, Model

MOST = 12
"""Facts that are explained after each update."""

Way = Literal["as usual", "backwards", "forwards", "in turns"]
Key = tuple[int, list[tuple[int, int, str]]]


@dataclass
class Expected:
    """The canonical steps of all facts of a program."""

    rules: Sequence[Rule]
    explicit: frozenset[Fact]
    model: Model

    @cached_property
    def _instances(self) -> list[tuple[int, oracle.Instance]]:
        facts = self.model.facts
        return [
            (number, instance)
            for number, rule in enumerate(self.rules)
            for plain in oracle.split(rule)
            for instance in oracle.instances(plain, facts, facts)
        ]

    @cached_property
    def heights(self) -> dict[Fact, int]:
        found = dict.fromkeys(self.explicit, 0)
        height = 0
        while len(found) < len(self.model.facts):
            height += 1
            known = set(found)
            for _, each in self._instances:
                if known.issuperset(each.positive):
                    found.setdefault(each.head, height)
        return found

    @cached_property
    def steps(self) -> dict[Fact, tuple[Key, oracle.Instance]]:
        found: dict[Fact, tuple[Key, oracle.Instance]] = {}
        for number, each in self._instances:
            premises = [self.heights[fact] for fact in each.positive]
            if 1 + max(premises, default=0) == self.heights[each.head]:
                key = number, [_order(v) for _, row in each.positive for v in row]
                if each.head not in found or key < found[each.head][0]:
                    found[each.head] = key, each
        return found

    def check(self, explanation: Explanation) -> None:
        """The explanation of a fact that holds is the canonical proof."""
        assert explanation
        waiting = [explanation]
        for each in waiting:  # grows while it is walked through
            fact = each.fact.relation, each.fact.row
            assert not is_auxiliary(fact[0])
            assert each.height == self.heights[fact]
            assert each.is_explicit == (fact in self.explicit)
            derivation = each.derivation
            if derivation is None:
                continue
            (number, _), instance = self.steps[fact]
            assert derivation.rule == self.rules[number]
            premises = [(p.relation, p.row) for p in derivation.premises]
            assert premises == list(dict.fromkeys(instance.positive))
            check_derivation(fact, derivation, self.model.facts)
            assert all(p.height < each.height for p in each.premises)
            waiting += each.premises

    def check_derivations(self, fact: Fact, found: Sequence[Derivation]) -> None:
        """All instances with a fact for their head, in order."""
        expected = {
            (number, tuple(dict.fromkeys(each.positive)))
            for number, each in self._instances
            if each.head == fact
        }
        shown = [
            (self.rules.index(d.rule), tuple((p.relation, p.row) for p in d.premises))
            for d in found
        ]
        assert set(shown) == expected
        for derivation in found:
            check_derivation(fact, derivation, self.model.facts)


def check_derivation(fact: Fact, derivation: Derivation, facts: set[Fact]) -> None:
    """The rule, filled in with the binding that is shown, says what the step says."""
    rule, binding = derivation.rule, dict(derivation.binding)
    assert _matches(rule.head, fact, binding)
    premises = [(p.relation, p.row) for p in derivation.premises]
    assert facts.issuperset(premises)
    for atom in rule.positive_atoms():
        assert any(_matches(atom, premise, binding) for premise in premises)
    for premise in premises:
        assert any(_matches(a, premise, binding) for a in rule.positive_atoms())
    assert len(derivation.absent) == len(list(rule.negated_atoms()))
    for atom in (*rule.negated_atoms(), *derivation.absent):
        assert not any(_matches(atom, other, binding) for other in facts)
    for computation in derivation.computations:
        assert _value(computation.expression, binding) == computation.result
        assert _value(computation.filled, {}) == computation.result


def _matches(atom: Atom, fact: Fact, binding: dict[str, Constant]) -> bool:
    name, row = fact
    if atom.predicate != name or len(row) != atom.arity:
        return False
    private = dict(binding)  # what is not bound may be anything, but always the same
    for argument, value in zip(atom.arguments, row, strict=True):
        match argument:
            case Variable(name="_"):
                continue
            case Variable(name=variable):
                if private.setdefault(variable, value) != value:
                    return False
            case _:
                if _value(argument, binding) != value:
                    return False
    return True


def _value(expression: Expression, binding: dict[str, Constant]) -> Constant:
    match expression:
        case Variable(name=name):
            return binding[name]
        case Term(constant=constant):
            return constant
        case Call(function=function, arguments=arguments):
            values = [_value(each, binding) for each in arguments]
            return FUNCTIONS[function].evaluate(*values)


def _order(value: Constant) -> tuple[int, int, str]:
    number = int(value.text) if value.kind is Kind.INTEGER else 0
    return value.kind, number, value.text


# ------------------------------------------------------------ knowledge bases


def carry_out(kb: KnowledgeBase, update: Update) -> None:
    known = {fact for fact in update.delete if fact[0] in kb.predicates}
    kb.update(
        delete=by_predicate(known),
        insert=by_predicate(update.insert),
        remove_rules=list(update.remove_rules),
        add_rules=list(update.add_rules),
    )


def by_predicate(facts: Iterable[Fact]) -> dict[str, object]:
    rows: dict[str, list[object]] = {}
    for name, row in facts:
        rows.setdefault(name, []).append(row)
    return dict(rows)


def facts_of(kb: KnowledgeBase, sort: Literal["all", "explicit"]) -> set[Fact]:
    return {
        (name, tuple(row))
        for name in kb.predicates
        for row in rows_of(kb.facts(name, sort).to_terms())
    }


def play(scenario: Scenario, engine: str, *, modules: bool) -> None:
    kb = KnowledgeBase(engine=engine, modules=modules, equality="off")
    kb.update(insert=by_predicate(scenario.facts), add_rules=list(scenario.rules))
    check_all(kb)
    for update in scenario.updates:
        carry_out(kb, update)
        check_all(kb)


def check_all(kb: KnowledgeBase) -> None:
    # Not those of the scenario: rules without a body are given facts, too.
    explicit = frozenset(facts_of(kb, "explicit"))
    expected = Expected(kb.rules, explicit, model_of(kb.rules, explicit))
    facts = sorted(expected.model.facts, key=repr)
    for name, row in facts[:: 1 + len(facts) // MOST]:
        explanation = kb.explain(name, row, derivations=10**6)
        expected.check(explanation)
        expected.check_derivations((name, row), explanation.derivations)


def paths(seed: int) -> Scenario:
    """Long paths in a graph, closed by rules of several sorts, and an update."""
    chance = random.Random(seed)  # noqa: S311  repeatable on purpose
    texts = [
        "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .",
        "r(?x, ?z) :- r(?x, ?y), e(?y, ?z) .",
    ]
    rules = ["r(?x, ?y) :- e(?x, ?y) .", texts[seed % 2], "b(?x) :- r(?x, ?x) ."]
    nodes = range(24)
    edges = {(n, n + 1) for n in nodes}
    edges |= {(chance.choice(nodes), chance.choice(nodes)) for _ in range(3)}
    facts = frozenset(("e", tuple(map(constant, edge))) for edge in edges)
    (gone,) = chance.sample(sorted(facts, key=repr), 1)
    parsed = tuple(parse_rules("\n".join(rules[: 2 + seed // 2])))
    return Scenario(parsed, facts, (Update(delete=frozenset([gone])),))


def go(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    """Have the search go a way that it would take on much more data only."""
    if way == "as usual":
        return
    turns = iter(range(10**9))

    def expected(_: object) -> float:
        if way == "in turns":
            return -1 if next(turns) % 2 else inf
        return -1 if way == "forwards" else inf

    monkeypatch.setattr(search, "_FEW", -1)
    monkeypatch.setattr(search._Forwards, "expected", property(expected))  # noqa: SLF001
