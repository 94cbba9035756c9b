"""How the rules of a knowledge base are run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Views
from evermat.engine_abilities import can_explain, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Engine
    from evermat.rule_plans import StratumPlan


def plans_text(engine: Engine, strata: Iterable[StratumPlan]) -> str:
    """Where the facts are, and how each rule of each stratum is run."""
    everything = engine.materialised
    views = Views(positive=everything, negative=everything)
    lines = [f"facts: {place_of(engine)}"]
    if can_explain(engine):
        lines += engine.explain_layout()
    for stratum in strata:
        lines.append(f"stratum {stratum.index}")
        if can_explain(engine):
            more = engine.explain_recursion(stratum.recursive.full)
            lines += [f"  {line}" for line in more]
        for query in stratum.rules.full.queries:
            steps = engine.explain(query, views)
            lines += [f"  {query.label}", *(f"    {step}" for step in steps)]
    return "\n".join(lines)
