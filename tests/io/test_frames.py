"""Rows in Python objects: what is taken, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evermat.columns import ArityMismatchError, MissingValueError, term_table, values
from evermat.io import NotRowsError, UnevenColumnsError, rows_from
from evermat.values import IRI, ValueConversionError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = [(1, "x"), (2, "y")]
TABLE = pa.table({"a": [1, 2], "b": ["x", "y"]})


class SparkFrame:
    """Answers as a Spark frame does."""

    def toArrow(self) -> pa.Table:  # noqa: N802  Spark's name
        return TABLE


def facts(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [values(column) for column in term_table(table).columns]
    return list(zip(*columns, strict=True))


def generated() -> Iterator[tuple[int, str]]:
    yield from ROWS


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.to_batches(),
        pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=[7, 8]),
        pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"])}),
        pd.DataFrame({"a": [1, 2], "b": np.array(["x", "y"], dtype=object)}),
        pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
        pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}).lazy(),
        pl.DataFrame(
            {"a": [1, 2], "b": ["x", "y"]}, schema_overrides={"b": pl.Categorical}
        ),
        SparkFrame(),
        {"a": [1, 2], "b": ["x", "y"]},
        {"a": np.array([1, 2]), "b": pl.Series(["x", "y"])},
        {"a": pa.array([1, 2]), "b": (text for text in "xy")},
        ROWS,
        [[1, "x"], (2, "y")],
        dict.fromkeys(ROWS).keys(),
        [{"a": 1, "b": "x"}, {"b": "y", "a": 2}],
    ],
    ids=lambda given: type(given).__name__,
)
def test_rows_are_taken_from(given: object) -> None:
    assert facts(rows_from(given, arity=2)) == ROWS


def test_rows_are_taken_from_generators() -> None:
    assert facts(rows_from(generated())) == ROWS


def test_single_columns_are_taken() -> None:
    assert facts(rows_from(pd.Series(["x"]))) == [("x",)]
    assert facts(rows_from(pl.Series(["x"]))) == [("x",)]


def test_matrices_are_taken() -> None:
    assert facts(rows_from(np.array([[1, 2], [3, 4]]))) == [(1, 2), (3, 4)]


def test_objects_in_frames_are_taken() -> None:
    frame = pd.DataFrame({"a": [IRI("u:v"), 7]})
    assert facts(rows_from(frame)) == [(IRI("u:v"),), (7,)]


@pytest.mark.parametrize(
    "given",
    [
        {"a": np.array([1, "x"], dtype=object)},
        {"a": pd.Series([1, "x"], dtype=object)},
        np.array([[1], ["x"]], dtype=object),
        pd.Series([1, "x"], dtype="category"),
    ],
)
def test_columns_may_hold_values_of_several_types(given: object) -> None:
    assert facts(rows_from(given)) == [(1,), ("x",)]


def test_whole_numbers_among_objects_stay_whole() -> None:
    numbers = np.array([1, 2.5], dtype=object)
    assert [repr(each) for (each,) in facts(rows_from({"a": numbers}))] == ["1", "2.5"]


@pytest.mark.parametrize(
    "given",
    [
        {"a": np.array([1j])},
        {"a": np.array([[1, 2]])},
        {"a": np.array(["\ud800"])},
        pd.Series([1j]),
    ],
)
def test_arrays_of_other_values_are_refused(given: object) -> None:
    with pytest.raises(ValueConversionError):
        rows_from(given)


def test_no_rows_have_the_arity_that_is_asked_for() -> None:
    assert rows_from([], arity=3).shape == (0, 3)
    assert rows_from([]).num_rows == 0
    assert rows_from([()], arity=0).num_rows == 1


def test_wrong_arity_is_refused() -> None:
    with pytest.raises(ArityMismatchError, match="row 1 has 2 values, expected 3"):
        rows_from(ROWS, arity=3)
    with pytest.raises(ArityMismatchError, match="`edge` has 2 columns, expected 3"):
        rows_from(TABLE, arity=3, name="edge")


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"a": [1, None]}),
        pd.DataFrame({"a": [1, None]}),
        pd.DataFrame({"a": ["x", None]}),
        pd.DataFrame({"a": np.array(["x", float("nan")], dtype=object)}),
        pl.DataFrame({"a": [1, None]}),
        {"a": [1, None]},
        [{"a": 1}, {"b": 1}],
    ],
    ids=lambda given: type(given).__name__,
)
def test_missing_values_are_refused(given: object) -> None:
    with pytest.raises(MissingValueError, match="row 2 has no value in column `a`"):
        rows_from(given)


def test_uneven_columns_are_refused() -> None:
    with pytest.raises(UnevenColumnsError, match="`a` has 2, `b` has 1"):
        rows_from({"a": [1, 2], "b": [1]})


def test_a_text_may_be_meant_as_a_file() -> None:
    with pytest.raises(NotRowsError, match=r"write Path\('edge.csv'\)"):
        rows_from("edge.csv")


@pytest.mark.parametrize("given", [b"x", 7, None, {"a": 1}])
def test_other_objects_are_refused(given: object) -> None:
    with pytest.raises(NotRowsError, match="cannot take rows from a value of type"):
        rows_from(given)


def test_strings_are_not_rows() -> None:
    with pytest.raises(ValueConversionError, match="row 1 is not a tuple or list"):
        rows_from(["ab", "cd"])


def test_frame_libraries_are_not_imported() -> None:
    # pyarrow itself loads pandas, where there is one, once it converts values.
    code = (
        "import sys, evermat.io, evermat.rdf; "
        "print({'pandas', 'polars', 'pyspark'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
