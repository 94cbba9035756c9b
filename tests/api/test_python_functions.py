"""Functions in Python, in rules: what they take, give and refuse."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import evermat
from evermat import KnowledgeBase
from evermat.algebra.queries import EvaluationError
from evermat.functions import _ALL
from evermat.functions.python import FunctionDefinitionError, MissingFunctionError
from evermat.lang.parser import parse_rules

if TYPE_CHECKING:
    from pathlib import Path


def own_vat(price: int, rate: Decimal = Decimal("0.5")) -> Decimal:
    return price * rate


def own_even(number: int) -> bool:
    return number % 2 == 0


def own_double(numbers: pa.Array) -> pa.Array:
    return pc.multiply(numbers, 2)


def own_failing(text: str) -> str:
    return text[100]


def _liar(number: int) -> str:
    return number  # type: ignore[return-value]  # this is the lie


@pytest.fixture(autouse=True)
def _registered() -> None:
    """Register them for one test; at import, all other tests would have them, too."""
    for each in (own_vat, own_even, own_failing):
        evermat.function(each)
    evermat.function(arrow=True)(own_double)
    evermat.function(name="own_liar")(_liar)


RULES = """
    tax(?x, own_vat(?p)) :- price(?x, ?p), own_even(?p) .
    two(?y) :- price(_, ?p), ?y = own_double(?p) .
    odd(?x) :- price(?x, ?p), not own_even(?p) .
"""


def test_functions_in_heads_conditions_and_equations(engine_name: str) -> None:
    kb = KnowledgeBase(RULES, engine=engine_name)
    kb.load({"price": [("a", 100), ("b", 3)]})
    kb.update(delete={"price": [("a", 100)]}, insert={"price": [("c", 8)]})
    assert set(kb.query("tax(?x, ?y)")) == {("c", Decimal("4.0"))}
    assert set(kb.query("two(?x)")) == {(6,), (16,)}
    assert set(kb.query("odd(?x)")) == {("b",)}
    assert set(kb.query("price(?x, ?p), own_even(?p)")) == {("c", 8)}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "o(own_failing(?x), ?p) :- price(?x, ?p) .",
            "`own_failing` raised Index",
        ),
        ("o(own_liar(?p), ?x) :- price(?x, ?p) .", "promises `str`, but gave 100"),
        ("o(own_vat(?x), ?p) :- price(?x, ?p) .", '`own_vat` needs `int`, but got "a"'),
        ("o(own_double(?x), ?p) :- price(?x, ?p) .", "`own_double` raised"),
    ],
)
def test_errors_name_function_rule_and_fact_and_change_nothing(
    rule: str, message: str
) -> None:
    kb = KnowledgeBase(rule)
    with pytest.raises(EvaluationError) as caught:
        kb.load({"price": [("a", 100)]})
    assert message in str(caught.value)
    assert rule.split("(")[1] in str(caught.value)
    assert 'price("a", 100)' in str(caught.value)
    assert kb.count("price") == 0


def test_wrong_numbers_and_types_are_found_early() -> None:
    with pytest.raises(evermat.EvermatError, match="EM204"):
        KnowledgeBase("p(own_even(?x, ?y)) :- q(?x, ?y) .")
    with pytest.raises(evermat.EvermatError, match="integer"):
        KnowledgeBase('p(own_even("x")) :- q .')


@pytest.mark.parametrize("name", ["abs", "not", "Even", "two words", "count"])
def test_names_that_rules_cannot_call_are_refused(name: str) -> None:
    with pytest.raises(FunctionDefinitionError):
        evermat.function(name=name)(lambda number: number)


def test_arguments_by_keyword_are_refused() -> None:
    with pytest.raises(FunctionDefinitionError, match="keyword"):

        @evermat.function
        def own_keyword(*, number: int) -> int:
            return number


def test_conditions_are_read_as_they_are_printed() -> None:
    rules = parse_rules("p(?x) :- q(?x), own_even(?x) .")
    assert parse_rules(str(rules[0])) == rules


def test_a_state_is_not_opened_without_its_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = KnowledgeBase(RULES, state=tmp_path / "state")
    kb.load({"price": [("a", 100)]})
    kept = _ALL["own_even"]
    monkeypatch.delitem(_ALL, "own_even")
    with pytest.raises(MissingFunctionError, match="`own_even`"):
        KnowledgeBase.open(tmp_path / "state")
    monkeypatch.setitem(_ALL, "own_even", kept)
    again = KnowledgeBase.open(tmp_path / "state")
    assert set(again.query("tax(?x, ?y)")) == {("a", Decimal("50.0"))}
    again.update(remove_rules="odd(?x) :- price(?x, ?p), not own_even(?p) .")
