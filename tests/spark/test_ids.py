"""Ids of constants that are worked out without asking anybody."""

from __future__ import annotations

import pyarrow as pa
import pytest

from boundary_numbers import INTEGERS
from evermat.columns import as_terms
from evermat.engines.spark.dictionary import constant_id, encoded_column, is_small
from evermat.values import constant

NUMBERS = (*INTEGERS, 10**18, -(10**18), 1 - 10**18, -4 * 10**18)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_integer_has_the_id_that_arithmetic_gives_it(number: int) -> None:
    """Else a result of arithmetic would not be the same number as a given one."""
    known = constant(number)
    assert (constant_id(known) == number) == is_small(number)
    column = pa.array([{"kind": int(known.kind), "text": known.text}])
    ids = encoded_column(as_terms(column)).column
    assert ids.to_pylist() == [constant_id(known)]
