"""Changes from version to version, and the facts of a version, as plain values."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.columns import term_texts, values
from evermat.engines import make_engine
from evermat.engines.spark.dictionary import Dictionary
from evermat.errors.redaction import without_secrets
from evermat.lake.errors import DamagedStateError, MissingVersionError, StateError
from evermat.lake.integrity import with_advice
from evermat.lake.layout import (
    CLIQUES,
    FACTS,
    PART,
    PROGRAM,
    RELATION,
    STANDS_FOR,
    TERMS,
    arguments,
    width_of,
)
from evermat.lake.rows import (
    decoded,
    split_by_relation,
    stacked_facts,
    stored_terms,
    summed_facts,
)
from evermat.lake.state import StoredProgram, read_program
from evermat.lake.table import require_version
from evermat.lake.versions import Version, existing, version_of
from evermat.lang.syntax import is_auxiliary
from evermat.results.change import Gone, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from evermat.algebra.equality import Representatives
    from evermat.lake.table import StateTable
    from evermat.values import Value

    Read = Callable[[], pa.Table]


# --------------------------------------------------------------- changes with equality

# Changes of all facts, for states whose facts are stored by representatives.
#
# A version may change the facts that a stored fact represents without changing the
# stored fact. So where cliques change, the facts that mention them are read from both
# versions, expanded, and compared.


class Standing:
    """The representatives of equal constants, from version to version.

    Attributes:
        pairs: constants and their representatives, at the current version.
    """

    def __init__(
        self, pairs: pa.Table, dictionary: Dictionary, arities: Mapping[str, int]
    ) -> None:
        self.pairs = pairs
        self._dictionary = dictionary
        self._arities = arities

    def next(
        self, changed: pa.Table, moved: pa.Table | None, facts: tuple[Read, Read]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Advance to the next version: yield its changes by predicate.

        Args:
            changed: facts that are added or removed.
            moved: the changes of pairs; None if there are none.
            facts: functions that read all facts of the previous version, and of this
                one.
        """
        removed = changed.filter(pc.less(changed["holds"], 0))
        added = changed.filter(pc.greater(changed["holds"], 0))
        before = after = self.pairs
        if moved is not None:
            self.pairs = after = summed_facts([before, moved])
            ids = _ids(moved)
            old, new = (read() for read in facts)
            removed, added = _with(removed, old, ids), _with(added, new, ids)
        was, now = self._side(removed, before), self._side(added, after)
        for name in sorted(was.names | now.names):
            for holds, gone in ((-1, Gone(was, now)), (1, Gone(now, was))):
                found = gone.read(name)
                if found.num_rows:
                    yield name, _numbered(found, holds)

    def _side(self, facts: pa.Table, pairs: pa.Table) -> Side:
        rows = _Rows(facts, self._dictionary, self._arities)
        return Side([rows], self._cliques(pairs), self._arities)

    def _cliques(self, pairs: pa.Table) -> Representatives:
        cliques = make_engine("embedded").representatives()
        cliques.take_up(decoded(pairs, self._dictionary, 2).select([0, 1]))
        return cliques


class _Rows:
    """Rows of the table as facts; a `Snapshot`."""

    def __init__(
        self, facts: pa.Table, dictionary: Dictionary, arities: Mapping[str, int]
    ) -> None:
        self._rows = dict(split_by_relation(facts))
        self._dictionary = dictionary
        self._arities = arities

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each nonempty relation."""
        return {name: rows.num_rows for name, rows in self._rows.items()}

    def read(self, relation: str) -> pa.Table:
        """Return the facts of a relation."""
        arity = self._arities[relation]
        table = decoded(self._rows[relation], self._dictionary, arity)
        return table.select(range(arity))


def _ids(moved: pa.Table) -> pa.Array:
    """Return the members of changed cliques, with old and new representatives."""
    return pa.array(np.union1d(moved["c0"].to_numpy(), moved["c1"].to_numpy()))


def _with(some: pa.Table, facts: pa.Table, ids: pa.Array) -> pa.Table:
    """Return some facts, and all that mention certain constants, without duplicates."""
    facts = facts.filter(_mentioning(facts, ids))
    others = some.filter(pc.invert(_mentioning(some, ids)))
    return stacked_facts([others, facts])


def _mentioning(facts: pa.Table, ids: pa.Array) -> pa.ChunkedArray:
    found = pa.chunked_array([pa.array(np.zeros(facts.num_rows, np.bool_))])
    for name in arguments(width_of(facts.column_names)):
        found = pc.or_(found, pc.is_in(facts[name], value_set=ids))
    return found


def _numbered(facts: pa.Table, holds: int) -> pa.Table:
    """Return facts with stored numbers, of which only the first is meaningful."""
    for name in STORED_NUMBERS:
        value = holds if name == STORED_NUMBERS[0] else 0
        numbers = pa.array(np.full(facts.num_rows, value, np.int64))
        facts = facts.append_column(name, numbers)
    return facts


# ------------------------------------------------------------------------------- feeds


class FactChange(NamedTuple):
    """A fact that a version added or removed."""

    version: int
    sign: str
    predicate: str
    values: tuple[Value, ...]


def changes(
    place: str | Path,
    *,
    since: int,
    until: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[FactChange]:
    """Yield the facts that were added (`+`) and removed (`-`), version by version.

    Args:
        place: the path or URI of the state.
        since: the version after which to begin; its own changes are not included.
        until: the last version, by default the latest.
        storage_options: options for remote storage, in the form of `deltalake`.

    Raises:
        MissingVersionError: a version was vacuumed, or does not exist.
    """
    for version, predicate, facts in _changed(place, since, until, storage_options):
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
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return changes as a table: `version`, `sign`, `predicate`, `values` as text."""
    parts = [_FEED.empty_table()]
    for version, predicate, facts in _changed(place, since, until, storage_options):
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
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return the facts of a predicate as term columns, with their numbers.

    The columns are the arguments, then `holds`, `given`, `c_nr` and `c_r`. If equality
    is rewritten, these are the stored facts, and the predicate `≈` contains the
    constants that are not their own representatives, with these.
    """
    table = existing(place, storage_options, version)
    part = CLIQUES if predicate == STANDS_FOR else FACTS
    facts = _summed(table, part, predicate)
    arity = _arities(_program(table)).get(predicate)
    if arity is None or facts is None:
        raise StateError(f"read `{predicate}`", "the state has no such predicate")
    return decoded(facts, _dictionary(table), arity)


def _summed(
    table: StateTable, part: str, predicate: str | None = None
) -> pa.Table | None:
    """Return the facts of a part, or of a predicate, that hold; None without files."""
    files = [table.read(file) for file in table.files(part)]
    if predicate is not None:
        files = [rows.filter(pc.equal(rows[RELATION], predicate)) for rows in files]
    if not files:
        return None
    facts = summed_facts(files)
    return facts.filter(pc.greater(facts["holds"], 0))


def _changed(
    place: str | Path,
    since: int,
    until: int | None,
    options: Mapping[str, str] | None,
) -> Iterator[tuple[int, str, pa.Table]]:
    """Yield the facts added or removed, with numbers, by version and predicate."""
    table = existing(place, options)
    program, dictionary = _program(table), _dictionary(table)
    arities = _arities(program)
    last = table.version if until is None else until
    for number in (since, last):
        require_version(number, table.version, place)
    standing: Standing | None = None
    for version in _leading_to(table, since, last):
        number = version.number
        with _until_vacuumed(number, table):
            parts = {file.path: table.read(file) for file in version.files}
            if standing is None and program.settings.rewrites:
                pairs = _at(place, number - 1, options, CLIQUES)
                standing = Standing(pairs, dictionary, arities)
        if not parts:
            continue
        cliques = {path for path in parts if path.startswith(f"{PART}={CLIQUES}/")}
        facts = summed_facts([parts[path] for path in parts if path not in cliques])
        facts = facts.filter(pc.not_equal(facts["holds"], 0))
        if standing is None:
            found = _decoded(facts, dictionary, arities)
        else:
            moved = [parts[path] for path in cliques]
            found = standing.next(
                facts,
                summed_facts(moved) if moved else None,
                (
                    partial(_at, place, number - 1, options, FACTS),
                    partial(_at, place, number, options, FACTS),
                ),
            )
        with _until_vacuumed(number, table):
            for relation, rows in found:
                yield number, relation, rows


def _decoded(
    facts: pa.Table, dictionary: Dictionary, arities: Mapping[str, int]
) -> Iterator[tuple[str, pa.Table]]:
    for relation, rows in split_by_relation(facts):
        if not is_auxiliary(relation):
            yield relation, decoded(rows, dictionary, arities[relation])


def _leading_to(table: StateTable, since: int, last: int) -> list[Version]:
    """Return the versions between two, except those abandoned by a restore."""
    found: list[Version] = []
    at = last
    with with_advice(table.log):
        while at > since:
            entry = table.log.entry(at)
            if entry.contents is not None and entry.contents.is_lost:
                raise MissingVersionError(
                    f"what changed with version {at} is no longer known",
                    help=f"its entry of the log was damaged; begin with version {at}",
                )
            version = version_of(entry)
            found.append(version)
            at = at - 1 if version.restored is None else version.restored
    if at < since:
        raise MissingVersionError(
            f"version {since} was given up when the state went back to version {at}",
            help=f"begin with version {at}, or read all facts anew",
        )
    return found[::-1]


@contextmanager
def _until_vacuumed(version: int, table: StateTable) -> Iterator[None]:
    """Convert errors about missing files to ones that explain their age."""
    try:
        yield
    except StateError as error:
        is_damage = isinstance(error, DamagedStateError)
        if is_damage and version >= table.contents.oldest:
            raise
        raise MissingVersionError(
            f"what changed with version {version} is no longer there",
            help="it was vacuumed; begin with a later version",
        ) from without_secrets(error)


def _at(
    place: str | Path, version: int, options: Mapping[str, str] | None, part: str
) -> pa.Table:
    """Return the rows of a part that hold at a version."""
    facts = _summed(existing(place, options, version), part)
    return summed_facts([]) if facts is None else facts


def _program(table: StateTable) -> StoredProgram:
    for file in table.files(PROGRAM):
        text = table.read(file)["text"][0].as_py()
        return read_program(text, table.place)
    return StoredProgram()


def _arities(program: StoredProgram) -> dict[str, int]:
    arities = program.arities()
    return {**arities, STANDS_FOR: 2} if program.settings.rewrites else arities


def _dictionary(table: StateTable) -> Dictionary:
    dictionary = Dictionary()
    for file in table.files(TERMS):
        terms = table.read(file)
        dictionary.add(terms["id"].to_numpy(), stored_terms(terms))
    return dictionary
