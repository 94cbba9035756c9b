"""Random histories of rules and facts, taken up from the state after every update."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import evermat
import oracle
from closure_scenarios import closure_scenario
from evermat.lang.syntax import canonical
from tracked import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evermat import KnowledgeBase
    from oracle import Fact, Model


@pytest.mark.parametrize("seed", range(12))
def test_history_goes_on_from_its_state(tmp_path: Path, seed: int) -> None:
    """One rule of each update goes and comes back with other names of variables.

    Algorithms and engines change on the way.
    """
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    scenario = closure_scenario(seed, change_rules=True)
    rules, facts = list(scenario.rules), scenario.facts
    kb = evermat.KnowledgeBase(rules, equality="off", state=tmp_path)
    kb.load(by_predicate(facts))
    for update in scenario.updates:
        gone = {canonical(rule) for rule in update.remove_rules}
        rules = [rule for rule in rules if canonical(rule) not in gone]
        returning = chance.sample(rules, min(len(rules), 1))
        respelt = [canonical(rule) for rule in returning]
        rules = [rule for rule in rules if rule not in returning]
        rules += [*respelt, *update.add_rules]
        facts = (facts - update.delete) | update.insert
        kb.update(
            delete=by_predicate(update.delete),
            insert=by_predicate(update.insert),
            remove_rules=[*update.remove_rules, *returning],
            add_rules=[*respelt, *update.add_rules],
            algorithm=chance.choice(ALGORITHMS),
        )
        model = oracle.materialise(rules, facts)
        assert counts_of(kb) == numbers(model)
        kb = evermat.KnowledgeBase.open(
            tmp_path, engine=chance.choice(["embedded", "reference"])
        )
        assert counts_of(kb) == numbers(model)


def by_predicate(facts: Iterable[Fact]) -> dict[str, list[object]]:
    rows: dict[str, list[object]] = {}
    for name, row in facts:
        rows.setdefault(name, []).append(row)
    return rows


def counts_of(kb: KnowledgeBase) -> dict[Fact, tuple[str, str]]:
    found = {}
    for name, arity in kb.predicates.items():
        for row in kb.counters(name).constants():
            nonrecursive, recursive = row[arity:]
            found[name, row[:arity]] = (nonrecursive.text, recursive.text)
    return found


def numbers(model: Model) -> dict[Fact, tuple[str, str]]:
    return {
        fact: (str(model.nonrecursive[fact]), str(model.recursive[fact]))
        for fact in model.facts
    }
