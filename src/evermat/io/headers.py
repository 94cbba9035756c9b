"""Detects whether the first row of a delimited text has names of its columns.

| first row                                 | columns declared | not declared     |
| ----------------------------------------- | ---------------- | ---------------- |
| the declared names, in any order and case | names            |                  |
| some of them                              | an error         |                  |
| like names, and other rows are not        | a row            | a row, warned of |
| anything else, or with a repeated value   | a row            | a row            |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import folded, order_of, quoted_names, warn
from evermat.errors import EvermatError, Label

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

_SAMPLE = 100
"""Number of rows that are compared with the first one."""

_NAME = re.compile(r"[^\W\d][\w .\-/()#]{0,63}")
_VALUE = re.compile(
    r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?%?|true|false"  # numbers, truth
    r"|\d{4}-\d\d-\d\d.*|\d\d?[/.]\d\d?[/.]\d{2,4}"  # dates
    r"|<[^<>\s]*>|[a-z][a-z0-9+.\-]*://\S+|[^@\s]+@[^@\s]+\.\w+",  # IRIs, addresses
    re.IGNORECASE,
)
_USUAL = frozenset(
    {
        *("id", "name", "key", "value", "type", "label", "class", "title", "count"),
        *("from", "to", "source", "target", "src", "dst", "start", "end"),
        *("head", "tail", "parent", "child", "node", "edge", "weight"),
        *("subject", "predicate", "object", "date", "time", "year", "age"),
    }
)
"""Column names so common that a row of only these is not data."""


class HeaderNamesError(EvermatError, ValueError):
    """A first row that may be the declared names, but lacks some of them.

    Attributes:
        found: the first row.
        declared: the names of the declaration.
    """

    code = "EM705"

    def __init__(
        self,
        found: Sequence[str],
        declared: Sequence[str],
        *,
        labels: tuple[Label, ...],
    ) -> None:
        self.found = tuple(found)
        self.declared = tuple(declared)
        super().__init__(
            f"the first row is {quoted_names(found)}, "
            f"and the columns are declared {quoted_names(declared)}",
            labels=labels,
            reason="a row of names has all declared names, in any order and case, "
            "which are no values in the rows below",
            help="correct the names, or say whether the file has a row of names: "
            "`--header` or `--no-header` on the command line, `header` of `@import`, "
            "`header=` of `read_table`",
        )


class HeaderWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """A first row that looks like names of columns, read as a fact."""

    code = "EM907"

    def __init__(
        self,
        path: str | Path,
        found: Sequence[str],
        *,
        help: str,  # noqa: A002  the word that users see
    ) -> None:
        super().__init__(
            f"is the first row of `{path}` a fact? it looks like names of columns: "
            f"{quoted_names(found)}",
            reason="the first row is a fact unless it holds the names that are "
            "declared",
            help=help,
        )


def _way_out(predicate: str, found: Sequence[str]) -> str:
    words = (re.sub(r"\W+", "_", text.strip()).strip("_").lower() for text in found)
    columns = ", ".join(f"{word or 'number'}: any" for word in words)
    return (
        f"if it holds names, write @declare {predicate}({columns}) . or give "
        "`--header` (`header=True` of `read_table`); if it is a fact, give "
        "`--no-header` (`header=False`)"
    )


def holds_names(
    texts: pa.Table, declared: Sequence[str], labels: Callable[[], tuple[Label, ...]]
) -> bool:
    """Return whether the first row of a text has the declared names.

    Args:
        texts: all rows, as strings.
        declared: the names.
        labels: returns the place of the first row.

    Raises:
        HeaderNamesError: it has some of them, or it is ambiguous.
    """
    first = first_row(texts)
    if first == list(declared):
        return True
    wanted = set(map(folded, declared))
    matching = [at for at, text in enumerate(first) if folded(text) in wanted]
    if not matching or not _could_be_names(first):
        return False
    recurs = any(_recurs(texts, at) for at in matching)
    if order_of(first, declared) is not None:
        if not recurs:
            return True
    elif recurs:
        return False
    raise HeaderNamesError(first, declared, labels=labels())


def ask_about_header(
    table: pa.Table,
    path: Path,
    predicate: str,
    variables: Callable[[], Collection[tuple[str, ...]]],
) -> None:
    """Warn if the first row of a text without declared names looks like names.

    Args:
        table: the rows, with guessed types.
        path: the file.
        predicate: the predicate of the rows.
        variables: returns the names that rules use for the columns.

    Warns:
        HeaderWarning: it looks like names.
    """
    if not table.num_rows or not table.num_columns:
        return
    if not all(map(_is_text, table.schema.types)):
        return  # a column with one text would be texts as a whole
    first = first_row(table)
    if not _could_be_names(first) or any(
        _recurs(table, at) for at in range(table.num_columns)
    ):
        return
    if (
        _others_are_values(table)
        or {folded(text) for text in first} <= _USUAL
        or any(order_of(first, names) is not None for names in variables())
    ):
        warn(HeaderWarning(path, first, help=_way_out(predicate, first)))


def first_row(texts: pa.Table) -> list[str]:
    """Return the strings of the first row."""
    return [column[0].as_py() for column in texts.columns]


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type))


def _could_be_names(first: Sequence[str]) -> bool:
    """Return whether all strings are distinct words, none of them a value.

    The first may be empty, as it is above the row numbers that pandas writes.
    """
    words = [text.strip() for text in first]
    named = words[1:] if len(words) > 1 and not words[0] else words
    return len(set(map(folded, words))) == len(words) and all(
        _NAME.fullmatch(word) and not _VALUE.fullmatch(word) for word in named
    )


def _recurs(texts: pa.Table, at: int) -> bool:
    """Return whether a value of the first row is repeated in its column, as in data."""
    column = texts.column(at)
    return bool(pc.index(column.slice(1), column[0]).as_py() >= 0)


def _others_are_values(table: pa.Table) -> bool:
    """Return whether some column has only values below a first row of names."""
    for column in table.columns:
        below = column.slice(1, _SAMPLE).to_pylist()
        if below and all(_VALUE.fullmatch(text.strip()) for text in below):
            return True
    return False
