"""What people have in their hands: values of other libraries, and mistakes."""

from __future__ import annotations

import copy
import enum
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from evermat import Budget, EvermatError, KnowledgeBase
from evermat.columns import MissingValueError
from evermat.results.change import UncopiableError
from evermat.values import XSD, Constant, Kind, ValueConversionError, constant

if TYPE_CHECKING:
    from collections.abc import Callable


class Colour(str, enum.Enum):  # noqa: UP042  as older programs have it
    RED = "red"


class Level(int, enum.Enum):
    HIGH = 7


@pytest.mark.parametrize(
    ("value", "plain"), [(Colour.RED, "red"), (Level.HIGH, 7), (np.str_("a"), "a")]
)
def test_members_of_enumerations_are_their_values(value: object, plain: object) -> None:
    assert constant(value) == constant(plain)
    kb = KnowledgeBase()
    kb.insert("p", [(value,)])
    assert kb.contains("p", (plain,))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    "text",
    ["2024-02-29", "2024-02-29T12:30:00.5", "2024-02-29T12:30:00.000000001"],
)
def test_moments_of_numpy_are_those_of_arrow(text: str, unit: str) -> None:
    moment = np.datetime64(text, unit)  # type: ignore[call-overload]
    kb = KnowledgeBase()
    kb.insert("p", pa.table({"at": pa.array([moment])}))
    assert kb.contains("p", (moment,))


def test_a_moment_beyond_the_years_of_datetime() -> None:
    moment = np.datetime64("12024-02-29T12:30:00", "ms")
    assert constant(moment).text == f"{XSD}dateTime\0" + "12024-02-29T12:30:00"


@pytest.mark.parametrize(
    "missing", [None, pd.NA, pd.NaT, np.datetime64("NaT")], ids=repr
)
@pytest.mark.parametrize("others", [[], [("a",)], [(1,), ("b",)]], ids=str)
def test_what_is_missing_is_refused(missing: object, others: list[Any]) -> None:
    kb = KnowledgeBase()
    with pytest.raises(MissingValueError) as caught:
        kb.insert("p", [*others, (missing,)])
    assert caught.value.row == len(others) + 1


@pytest.mark.parametrize(
    "value",
    [
        np.timedelta64(1, "ns"),
        np.timedelta64(1, "D"),
        np.array([1]),
        np.array([1, 2]),
        pd.Series([1, 2]),
        np.longdouble(1),
        b"bytes",
        [1],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_no_constant_stands_for_is_refused(value: object) -> None:
    with pytest.raises(ValueConversionError):
        constant(value)


def test_a_refused_value_is_not_shown_in_full() -> None:
    with pytest.raises(ValueConversionError) as caught:
        constant([b"x" * 1_000_000])
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([None], "EM402"),
        ([None, (1,)], "EM402"),
        ([(1,), None], "EM402"),
        ([{"x": 1}, {"x": 2, "y": 3}], "EM724"),
        ([{"x": 1}, {"y": 3}], "EM701"),
        ([{"x": 1}, (2,)], "EM719"),
    ],
    ids=str,
)
def test_no_row_is_lost_without_a_word(rows: list[Any], code: str) -> None:
    kb = KnowledgeBase()
    with pytest.raises(EvermatError, match=code):
        kb.insert("p", rows)


def test_moments_beyond_the_calendar_are_refused_with_their_column() -> None:
    kb = KnowledgeBase(engine="reference")
    kb.insert("seen", pa.table({"at": pa.array([0], pa.timestamp("s"))}))
    wrong = pa.table({"at": pa.array([0, 1 << 50], pa.timestamp("s"))})
    with pytest.raises(ValueConversionError, match=r"row 2 has .* in column `at`"):
        kb.insert("seen", wrong)
    assert kb.count("seen") == 1


def test_a_column_of_arrow_is_a_table_of_one_column() -> None:
    kb = KnowledgeBase()
    kb.insert("p", pa.array([1, 2]))
    kb.insert("p", pa.chunked_array([[2], [3]]))
    assert sorted(kb.facts("p")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    "call",
    [
        lambda kb: kb.query(None),
        lambda kb: kb.query(["p(?x)"]),
        lambda kb: kb.explain(None),
        lambda kb: kb.explain("p", 1),
        lambda kb: kb.facts(None),
        lambda kb: kb.count(["p"]),
        lambda kb: kb.contains(7, (1,)),
        lambda kb: kb.load(rdf=7),
        lambda kb: kb.update(add_rules=b"p(1) ."),
        lambda kb: kb.update(add_rules={"p": 1}),
        lambda _: KnowledgeBase(engine=None),  # type: ignore[arg-type]
        lambda _: KnowledgeBase(budget=3),  # type: ignore[arg-type]
        lambda _: KnowledgeBase(progress=3),  # type: ignore[arg-type]
        lambda _: Budget(rounds=-1),
        lambda _: Budget(seconds="3"),  # type: ignore[arg-type]
    ],
)
def test_wrong_types_are_refused_with_words(
    call: Callable[[KnowledgeBase], object],
) -> None:
    kb = KnowledgeBase("p(1) .")
    with pytest.raises(EvermatError):
        call(kb)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_belongs_to_an_engine_cannot_be_copied(
    make: Callable[[object], object],
) -> None:
    kb = KnowledgeBase("p(1) .")
    with pytest.raises(UncopiableError, match="KnowledgeBase"):
        make(kb)
    with pytest.raises(UncopiableError, match="Change"):
        make(kb.insert("p", [(2,)]))


def test_results_can_be_pickled() -> None:
    rows = KnowledgeBase("p(1) . p(a) .").facts("p")
    assert pickle.loads(pickle.dumps(rows)).to_list() == rows.to_list()  # noqa: S301


def test_notebooks_show_tables() -> None:
    kb = KnowledgeBase("q(?x) :- p(?x) .")
    change = kb.insert("p", [("<b>",), *((number,) for number in range(20))])
    assert "<td>q</td><td>21</td><td>0</td>" in change._repr_html_()
    assert "nothing" in kb.insert("p", [])._repr_html_()
    rows = kb.query("q(?x)")._repr_html_()
    assert "<th>x</th>" in rows
    assert "… and 11 more" in rows
    assert "&lt;b&gt;" in kb.query("q(?x), starts_with(str(?x), '<')")._repr_html_()
    assert "<pre>q(1)" in kb.explain("q(1)")._repr_html_()


def test_short_texts_of_objects() -> None:
    kb = KnowledgeBase("q(?x) :- p(?x) . p(1) .")
    assert repr(kb) == "<KnowledgeBase on embedded: 1 rule, 2 facts>"
    assert repr(kb.catalogue) == "<Catalogue p/1, q/1>"
    assert repr(kb.explain("p(1)")) == "<Explanation p(1) is explicit>"
    assert repr(kb.explain("q(1)")) == "<Explanation q(1) has a proof of height 1>"
    assert repr(kb.explain("q(2)")) == "<Explanation q(2) does not hold>"
    assert constant(1) == Constant(Kind.INTEGER, "1")
