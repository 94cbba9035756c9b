"""What changed from version to version, and the facts of a version, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import term_texts, values
from evermat.engines.spark.dictionary import Dictionary
from evermat.lake.errors import MissingVersionError, StateError
from evermat.lake.layout import FACTS, PROGRAM, RELATION, TERMS
from evermat.lake.merging import summed_facts
from evermat.lake.program import read_program
from evermat.lake.state import decoded, split_by_relation, stored_terms
from evermat.lake.versions import existing, history
from evermat.lang.normalise import is_auxiliary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evermat.lake.table import StateTable
    from evermat.values import Value


class FactChange(NamedTuple):
    """A fact that came with a version, or left with it."""

    version: int
    sign: str
    predicate: str
    values: tuple[Value, ...]


def changes(
    place: str | Path,
    *,
    since: int,
    until: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Iterator[FactChange]:
    """The facts that came (`+`) and left (`-`), version by version.

    Args:
        place: where the state is.
        since: the version from which on; what it holds itself is not among them.
        until: the last version, by default the latest.
        options: for the storage, as `deltalake` takes them.

    Raises:
        MissingVersionError: a version was vacuumed.
    """
    for version, predicate, facts in _changed(place, since, until, options):
        arity = facts.num_columns - 4
        columns = [values(facts.column(at)) for at in range(arity)]
        rows = zip(*columns, strict=True) if arity else [()] * facts.num_rows
        for row, holds in zip(rows, facts["holds"].to_pylist(), strict=True):
            sign = "+" if holds > 0 else "-"
            yield FactChange(version, sign, predicate, tuple(row))


def change_table(
    place: str | Path,
    *,
    since: int,
    until: int | None = None,
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The same as a table: `version`, `sign`, `predicate`, `values` as term texts."""
    parts = [_FEED.empty_table()]
    for version, predicate, facts in _changed(place, since, until, options):
        arity, size = facts.num_columns - 4, facts.num_rows
        texts = [term_texts(facts.column(at)).to_pylist() for at in range(arity)]
        rows = list(zip(*texts, strict=True)) if arity else [()] * size
        signs = pc.if_else(pc.greater(facts["holds"], 0), "+", "-").to_pylist()
        columns = [[version] * size, signs, [predicate] * size, [list(r) for r in rows]]
        parts.append(pa.table(columns, schema=_FEED))
    return pa.concat_tables(parts)


_FEED = pa.schema(
    [
        ("version", pa.int64()),
        ("sign", pa.string()),
        ("predicate", pa.string()),
        ("values", pa.list_(pa.string())),
    ]
)


def read(
    place: str | Path,
    predicate: str,
    *,
    version: int | None = None,
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The facts of a predicate as term columns, with their numbers.

    The columns are the arguments, then `holds`, `given`, `c_nr` and `c_r`.
    """
    table = existing(place, options, version)
    files = [table.read(file.path) for file in table.files(FACTS)]
    chosen = [rows.filter(pc.equal(rows[RELATION], predicate)) for rows in files]
    facts = summed_facts(chosen) if chosen else None
    arity = _arities(table).get(predicate)
    if arity is None or facts is None:
        raise StateError(f"read `{predicate}`", "the state has no such predicate")
    held = facts.filter(pc.greater(facts["holds"], 0))
    return decoded(held, _dictionary(table), arity)


def _changed(
    place: str | Path,
    since: int,
    until: int | None,
    options: Mapping[str, str] | None,
) -> Iterator[tuple[int, str, pa.Table]]:
    """By version and predicate the facts that came or left."""
    table = existing(place, options)
    arities, dictionary = _arities(table), _dictionary(table)
    last = table.version if until is None else until
    for version in history(place, options=options):
        if not since < version.number <= last:
            continue
        parts = []
        for path in version.changes:
            try:
                parts.append(table.read(path))
            except StateError as error:
                raise MissingVersionError(
                    f"what changed with version {version.number} is no longer there",
                    help="it was vacuumed; begin with a later version",
                ) from error
        if not parts:
            continue
        facts = summed_facts(parts)
        facts = facts.filter(pc.not_equal(facts["holds"], 0))
        for relation, rows in split_by_relation(facts):
            if not is_auxiliary(relation):
                yield (
                    version.number,
                    relation,
                    decoded(rows, dictionary, arities[relation]),
                )


def _arities(table: StateTable) -> dict[str, int]:
    arities: dict[str, int] = {}
    for file in table.files(PROGRAM):
        text = table.read(file.path)["text"][0].as_py()
        arities |= read_program(text, table.place).arities()
    return arities


def _dictionary(table: StateTable) -> Dictionary:
    dictionary = Dictionary()
    for file in table.files(TERMS):
        terms = table.read(file.path)
        dictionary.add(terms["id"].to_numpy(), stored_terms(terms))
    return dictionary
