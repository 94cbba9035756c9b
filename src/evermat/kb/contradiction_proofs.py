"""Proofs of contradictions: why two different values would be equal.

An update that fails leaves nothing behind, but its error has the given facts that make
the values equal. The proof is found among them, on a small engine of their own, as
`evermat.kb.equality_explanations` does for what holds.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from evermat.algebra.abilities import UnequalValuesError
from evermat.engines import make_engine
from evermat.explain.proofs import Ordered, Prover, RuleLook, SearchLimitError
from evermat.kb.explanations import WrittenRules
from evermat.lang.normalise import rule_key
from evermat.lang.syntax import SAME_AS
from evermat.maintenance.equality.proofs import plain_axioms, visible_arities
from evermat.maintenance.proof import Fact
from evermat.maintenance.requests import declare_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from evermat.explain.explanation import Explanation
    from evermat.maintenance.rule_book import RuleBook

MOST_INSTANCES = 1_000_000
"""Rule instances that are looked at to find a proof."""
MOST_LINES = 40
"""Lines of a proof that an error shows."""


@contextmanager
def contradictions_proved(
    rules: Callable[[], RuleBook], prefixes: Mapping[str, str]
) -> Iterator[None]:
    """Have an error in the block tell the proof, if it is quickly found.

    Args:
        rules: the rules that are at work in the block.
        prefixes: for showing IRIs.

    Raises:
        UnequalValuesError: as it was raised, with an explanation.
    """
    try:
        yield
    except UnequalValuesError as error:
        if error.given is None:
            raise
        fact = Fact(SAME_AS, (error.left, error.right))
        explanation = _explain(fact, error.given, rules(), prefixes)
        if explanation is None:
            raise
        told = UnequalValuesError(error.left, error.right, given=error.given)
        told.derivation = error.derivation
        told.explanation = explanation
        told.proof = _beginning(explanation)
        raise told from None


def _explain(
    fact: Fact,
    given: Mapping[str, pa.Table],
    book: RuleBook,
    prefixes: Mapping[str, str],
) -> Explanation | None:
    """Why a fact follows from given facts, if that can be told."""
    # Equality depends on no negation.
    normal = [rule for rule in book.normal.values() if not any(rule.negated_atoms())]
    small = make_engine("embedded")
    for name, table in given.items():
        small.declare(name, table.num_columns)
    declare_rules(small, normal)
    axioms = plain_axioms(visible_arities(small))
    declare_rules(small, axioms)
    small.load(given.items())
    by_key = {rule_key(rule): rule for rule in axioms} | dict(book.given)
    rules = WrittenRules(by_key, tuple(book.given.values()))
    look = RuleLook((*normal, *axioms))
    prover = Prover(small, look, Ordered(rules.rank), limit=MOST_INSTANCES)
    try:
        with prover.at_work():
            proof = prover.prove(fact, negative=small.no_facts())
    except SearchLimitError:
        return None
    return None if proof is None else rules.explanation(proof, prefixes)


def _beginning(explanation: Explanation) -> tuple[str, ...]:
    """The first lines of a long proof, which are about its last steps."""
    lines = str(explanation).splitlines()
    more = len(lines) - MOST_LINES
    if more <= 0:
        return tuple(lines)
    return (*lines[:MOST_LINES], f"… and {more:,} more lines: see `explanation`")
