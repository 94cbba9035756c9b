"""Warnings of rules that would silently derive nothing, or something else than meant.

`evermat check` tells them from the program alone; here the facts are known as well.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import as_terms, kinds_in
from evermat.errors import ForgottenVariableWarning
from evermat.functions import ANY
from evermat.lang.remarks import doubts
from evermat.lang.syntax import TRIPLE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.functions import Type
    from evermat.lang.syntax import Program

_SHOWN = 10
"""How many are shown; `evermat check` shows more."""


def warn_of_doubts(program: Program, data: Mapping[str, pa.Table]) -> None:
    """Warn of what a program hardly means, given the facts that it is run on."""
    kinds = {
        name: [_kinds(column) for column in table.columns]
        for name, table in data.items()
        if name != TRIPLE  # its columns have constants of all kinds
    }
    found = [
        each
        for each in doubts(program, kinds)
        if not isinstance(each, ForgottenVariableWarning)
        or not all(_occurs(word, data) for word in each.words)
    ]
    for each in found[:_SHOWN]:
        warnings.warn(each, stacklevel=2)


def _kinds(column: pa.ChunkedArray) -> Type:
    if pa.types.is_struct(column.type):
        return frozenset(kinds_in(as_terms(column)))
    if not len(column):
        return frozenset()
    if pa.types.is_integer(column.type):
        return frozenset({Kind.INTEGER})
    return frozenset({Kind.STRING}) if _is_string(column.type) else ANY


def _is_string(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _occurs(word: str, data: Mapping[str, pa.Table]) -> bool:
    """Whether any fact has a word; then it is a constant, after all."""
    return any(
        pc.any(pc.equal(texts, word)).as_py()
        for table in data.values()
        for column in table.columns
        for texts in _texts(column)
    )


def _texts(column: pa.ChunkedArray) -> list[pa.Array]:
    if pa.types.is_struct(column.type):
        return [chunk.field(1) for chunk in column.chunks]
    return list(column.chunks) if _is_string(column.type) else []
