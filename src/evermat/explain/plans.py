"""How the rules of a knowledge base are run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Views
from evermat.algebra.abilities import can_explain, place_of
from evermat.algebra.compile import RuleSet

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from evermat.algebra import Engine
    from evermat.algebra.compile import StratumPlan
    from evermat.lang.syntax import Rule
    from evermat.maintenance.modules import Module


def plans_text(
    engine: Engine, strata: Iterable[StratumPlan], modules: Sequence[Module]
) -> str:
    """Where the facts are, and how each rule of each stratum is run."""
    taken = {rule for module in modules for rule in module.rules}
    everything = engine.materialised
    views = Views(positive=everything, negative=everything)
    lines = [f"facts: {place_of(engine)}"]
    if can_explain(engine):
        lines += engine.explain_layout()
    for stratum in strata:
        lines.append(f"stratum {stratum.index}")
        rules = set(stratum.rules.rules)
        for module in modules:
            if not rules.isdisjoint(module.rules):
                lines.append(f"  {module.name}, by a module")
                lines += [f"    {rule.written}" for rule in module.rules]
        if can_explain(engine):
            recursive = _without(stratum.recursive, taken)
            lines += [f"  {each}" for each in engine.explain_recursion(recursive.full)]
        for query in _without(stratum.rules, taken).full.queries:
            steps = engine.explain(query, views)
            lines += [f"  {query.label}", *(f"    {step}" for step in steps)]
    return "\n".join(lines)


def _without(rules: RuleSet, taken: Container[Rule]) -> RuleSet:
    left = tuple(rule for rule in rules.rules if rule not in taken)
    return RuleSet(left, rules.is_local)
