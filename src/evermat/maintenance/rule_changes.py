"""Rules that come and go.

A change of rules may change the strata, and which rules are recursive. It comes down to
four sorts of normal rules:

- rules that go: all their instances over the old facts are lost. This is settled first
  (`undermine`), against the old division into recursive and nonrecursive rules;
- rules that stay but change sides: their instances over the old facts move from one
  counter to the other (`reclassify`);
- rules that stay: as in any update, but in the strata of the new program;
- rules that come: all their instances over the new facts are gained, each in its
  stratum's insertion phase (`Stratum.new_nonrecursive`, `Stratum.new_recursive`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.compile import compile_rules, derive, derive_counts
from evermat.maintenance.modules import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Counters, Engine, Facts, SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import Atom, Rule
    from evermat.maintenance.compiled_rules import CompiledRules
    from evermat.maintenance.rule_book import RuleChange


def undermine(engine: Engine, change: RuleChange) -> SettledFacts:
    """Facts that rules to be removed derive; some of them may go."""
    rules = compile_rules(change.removed, _never_local)
    if not rules.rules:
        return engine.no_facts()
    facts = engine.materialised
    return derive(engine, rules.full, positive=facts, negative=facts)


def undermine_counting(
    engine: Engine, old: CompiledRules, change: RuleChange
) -> SettledFacts:
    """Like `undermine`, and take the derivations out of the counters."""
    facts = engine.materialised
    heads: Facts = engine.no_facts()
    for module in old.modules:
        if not set(change.removed).isdisjoint(module.rules):
            # Instances of modules were never counted, and are too many to match.
            heads |= module.derive(Stage(engine, facts, facts, facts))
    counted = [rule for rule in change.removed if rule not in old.claimed]
    for removed, counters in (
        (_those(counted, old.recursive), engine.recursive_counts),
        (_others(counted, old.recursive), engine.nonrecursive_counts),
    ):
        if removed.rules:
            counts = derive_counts(engine, removed.full, positive=facts, negative=facts)
            counters.subtract(counts)
            heads |= counts.facts
    return engine.settle(heads)


def reclassify(engine: Engine, old: CompiledRules, new: CompiledRules) -> None:
    """Move the counts of rules that became recursive, or cease to be.

    Rules that modules take are not counted at all.
    """
    facts = engine.materialised
    moves: dict[tuple[Counters | None, Counters | None], list[Rule]] = {}
    for rule in old.rules & new.rules:
        move = _counters_of(engine, rule, old), _counters_of(engine, rule, new)
        if move[0] is not move[1]:
            moves.setdefault(move, []).append(rule)
    for (source, target), rules in moves.items():
        counts = derive_counts(
            engine,
            compile_rules(rules, _never_local).full,
            positive=facts,
            negative=facts,
        )
        if source is not None:
            source.subtract(counts)
        if target is not None:
            target.add(counts)


def _counters_of(
    engine: Engine, rule: Rule, compiled: CompiledRules
) -> Counters | None:
    """Where the instances of a rule are counted."""
    if rule in compiled.claimed:
        return None
    if rule in compiled.recursive:
        return engine.recursive_counts
    return engine.nonrecursive_counts


def _those(rules: Iterable[Rule], chosen: frozenset[Rule]) -> RuleSet:
    return compile_rules((rule for rule in rules if rule in chosen), _never_local)


def _others(rules: Iterable[Rule], chosen: frozenset[Rule]) -> RuleSet:
    return compile_rules((rule for rule in rules if rule not in chosen), _never_local)


def _never_local(rule: Rule, atom: Atom) -> bool:
    del rule, atom
    return False
