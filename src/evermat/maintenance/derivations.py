"""Which facts hold without the help of facts that are being looked into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Views
from evermat.algebra.abilities import can_prove

if TYPE_CHECKING:
    from evermat.algebra import SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.maintenance.context import Run


def holding(run: Run, facts: SettledFacts, *rule_sets: RuleSet) -> SettledFacts:
    """Those of the facts that are given, or that rules derive from what remains.

    An engine that can stop at the first derivation is asked about what is still open;
    others are asked about everything at once.
    """
    engine = run.engine
    rules = [each.rederive for each in rule_sets if each.rules]
    if not can_prove(engine):
        views = Views(run.remaining, run.possible, facts)
        derived = (engine.derive(queries, views) for queries in rules)
        return run.union([facts & run.explicit, *derived])
    held = [engine.settle(facts & run.explicit)]
    for queries in rules:
        facts = engine.settle(facts - held[-1])
        if facts.is_empty():
            break
        views = Views(run.remaining, run.possible, facts)
        held.append(engine.derivable(queries, views))
    return run.union(held)
