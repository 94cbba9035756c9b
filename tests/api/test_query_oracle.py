"""Random questions are answered as trying all values would answer them."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from evermat import KnowledgeBase

VALUES = (0, 1, 2)
ARITIES = {"p": 1, "q": 2, "r": 3}
DECLARED = "@declare p(any) . @declare q(any, any) . @declare r(any, any, any) ."
Row = tuple[int, ...]
Facts = dict[str, set[Row]]


class Literal(NamedTuple):
    """An atom with variables (names), constants (numbers) or `_` as arguments."""

    predicate: str
    arguments: tuple[str | int, ...]
    is_negated: bool

    def __str__(self) -> str:
        inner = ", ".join(
            f"?{each}" if isinstance(each, str) and each != "_" else str(each)
            for each in self.arguments
        )
        return f"{'not ' if self.is_negated else ''}{self.predicate}({inner})"

    @property
    def names(self) -> set[str]:
        return {each for each in self.arguments if isinstance(each, str)} - {"_"}


def literals(*, is_negated: bool) -> st.SearchStrategy[Literal]:
    argument = st.sampled_from(["x", "y", "z", "_", *VALUES])
    return st.sampled_from(sorted(ARITIES)).flatmap(
        lambda name: st.tuples(*[argument] * ARITIES[name]).map(
            lambda arguments: Literal(name, arguments, is_negated)
        )
    )


FACTS = st.fixed_dictionaries(
    {
        name: st.sets(st.tuples(*[st.sampled_from(VALUES)] * arity), max_size=9)
        for name, arity in ARITIES.items()
    }
)
POSITIVE = st.lists(literals(is_negated=False), min_size=1, max_size=3)
NEGATED = st.lists(literals(is_negated=True), max_size=2)


def holds(literal: Literal, values: dict[str, int], facts: Facts) -> bool:
    """Whether some row fits; names without a value may stand for anything."""

    def fits(row: Row) -> bool:
        local: dict[str, int] = {}
        for argument, value in zip(literal.arguments, row, strict=True):
            if argument == "_":
                continue
            if isinstance(argument, int):
                wanted = argument
            else:
                wanted = values.get(argument, local.setdefault(argument, value))
            if wanted != value:
                return False
        return True

    return any(map(fits, facts[literal.predicate])) != literal.is_negated


@given(facts=FACTS, positive=POSITIVE, negated=NEGATED, order=st.randoms())
def test_oracle_answers_are_all_values_that_fit(
    facts: Facts, positive: list[Literal], negated: list[Literal], order: object
) -> None:
    question = [*positive, *negated]
    getattr(order, "shuffle")(question)  # noqa: B009  the type of Hypothesis' randoms
    mentioned = (each for literal in question if not literal.is_negated
                 for each in literal.arguments)  # fmt: skip
    names = (each for each in mentioned if isinstance(each, str) and each != "_")
    columns = tuple(dict.fromkeys(names))
    # A name of two negated atoms, and of nothing else, would be unsafe.
    seen: set[str] = set()
    for literal in list(question):
        local = literal.names - set(columns) if literal.is_negated else set()
        if local & seen:
            question.remove(literal)
        seen |= local
    expected = {
        values
        for values in product(VALUES, repeat=len(columns))
        if all(
            holds(literal, dict(zip(columns, values, strict=True)), facts)
            for literal in question
        )
    }
    for engine in ("reference", "embedded"):
        kb = KnowledgeBase(DECLARED, engine=engine)
        kb.load(facts)
        result = kb.query(", ".join(map(str, question)))
        assert result.columns == columns
        assert set(result) == expected
        assert len(result) == len(expected)
