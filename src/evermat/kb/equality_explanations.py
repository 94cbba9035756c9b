"""Explanations where equality is rewritten.

The facts that a fact can follow from are taken to a small engine of their own, as they
were given, and the proof is found there; see `evermat.maintenance.equality.proofs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines import make_engine
from evermat.explain.proofs import (
    NoProofError,
    Ordered,
    Prover,
    RuleLook,
    search_watch,
    undone,
)
from evermat.kb.explanations import WrittenRules
from evermat.lang.normalise import rule_key
from evermat.maintenance.equality.proofs import (
    Sources,
    absent_tables,
    plain_axioms,
    visible_arities,
)
from evermat.maintenance.requests import declare_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import Engine
    from evermat.explain.explanation import Explanation
    from evermat.kb.equality_materialisation import EqualityMaterialisation
    from evermat.lang.syntax import Rule
    from evermat.maintenance.proof import Fact, Proof

_FIRST_DEPTH = 4
"""Levels of facts that are looked at to begin with."""


def explain_rewritten(
    kept: EqualityMaterialisation,
    fact: Fact,
    *,
    own: Sequence[Rule],
    prefixes: Mapping[str, str],
    limit: int | None = None,
) -> Explanation:
    """Why a fact holds that does hold, from facts as they were given.

    Args:
        kept: what holds, in terms of representatives.
        fact: the fact, in any terms.
        own: the rules that were written.
        prefixes: for showing IRIs.
        limit: how many rule instances may be looked at.
    """
    axioms = plain_axioms(visible_arities(kept.engine))
    given = {rule_key(rule): rule for rule in axioms} | dict(kept.book.given)
    rules = WrittenRules(given, own)
    search = _Search(kept, RuleLook((*kept.rules, *axioms)), rules, limit)
    return rules.explanation(search.prove(fact), prefixes)


class _Search:
    """Looks for a proof among more and more of the given facts."""

    def __init__(
        self,
        kept: EqualityMaterialisation,
        look: RuleLook,
        rules: WrittenRules,
        limit: int | None,
    ) -> None:
        self._kept = kept
        self._look = look
        self._order = Ordered(rules.rank)
        self._limit = limit

    def prove(self, fact: Fact) -> Proof:
        """The proof of a fact that holds."""
        kept = self._kept
        with undone(kept.engine, search_watch(self._limit, kept.progress)):
            sources = Sources.of(kept.engine, kept.representatives, kept.rules, fact)
            depth = _FIRST_DEPTH
            while True:
                sources.widen(depth)
                proof = self._prove_among(sources, fact)
                is_enough = sources.is_whole or (
                    proof is not None and proof.heights[fact] <= depth
                )
                if proof is not None and is_enough:
                    return proof
                if is_enough:
                    raise NoProofError(
                        "a fact holds that does not follow from what was given",
                        help="materialise anew, and please report this",
                    )
                depth *= 2

    def _prove_among(self, sources: Sources, fact: Fact) -> Proof | None:
        kept, look = self._kept, self._look
        tables = dict(sources.tables())
        absent = absent_tables(
            kept.engine, kept.representatives, kept.rules, tables.values()
        )
        small = self._small_engine(tables)
        prover = Prover(small, look, self._order, limit=self._limit)
        with prover.at_work():
            negative = small.no_facts()
            for name, table in absent:
                negative = small.settle(negative | small.intern(name, table))
            return prover.prove(fact, negative=negative)

    def _small_engine(self, tables: Mapping[str, pa.Table]) -> Engine:
        small = make_engine("embedded")
        for name, arity in self._kept.engine.relations().items():
            small.declare(name, arity)
        declare_rules(small, self._look.rules)
        small.load(tables.items())
        return small
