"""The constants of ids: on the driver while they are few, otherwise on the cluster.

Small integers are not included. The driver has one sorted run of ids with their kinds
and texts, and a few more recent ones; runs of similar size are merged. Beyond a limit
they move to a table on the cluster (`terms`), and the driver fetches the constants it
has to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import EngineUseError
from evermat.columns import TERM, as_terms
from evermat.errors import EvermatError
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from pyspark.sql import DataFrame

    Ids = npt.NDArray[np.int64]

# ---------------------------------------------------------------------------------- ids

# Constants as 64-bit ids that can be worked out anywhere, without asking anybody.
#
# An integer between -2**62 and 2**62 is its own id, so that Spark adds and compares
# ids. Every other constant has an id from 2**62 upwards that is taken from a digest of
# its kind and its text. Driver, Python workers and Spark's SQL functions all arrive at
# the same id, so encoding needs neither a join nor a lock. Two constants with the same
# digest are found out by the dictionary, and refused.

FIRST_DIGEST = 1 << 62
"""The smallest id that is not an integer itself."""
SMALLEST = -(1 << 62)
"""The smallest integer that is its own id."""

_MASK = FIRST_DIGEST - 1
_DIGITS = len(str(SMALLEST))
"""Largest length of the text of a small integer, including the sign."""


def is_small(number: int) -> bool:
    """Return whether an integer is its own id."""
    return SMALLEST <= number < FIRST_DIGEST


def id_of(kind: int, text: str) -> int:
    """Return the id of a constant."""
    if kind == Kind.INTEGER and len(text) <= _DIGITS:
        number = int(text)
        if is_small(number):
            return number
    # Spark: conv(substr(md5(concat(char(kind), text)), 1, 16), 16, -10), then masked.
    digest = md5(f"{chr(kind)}{text}".encode(), usedforsecurity=False).digest()
    return (int.from_bytes(digest[:8]) & _MASK) | FIRST_DIGEST


def constant_id(constant: Constant) -> int:
    """Return the id of a constant."""
    return id_of(constant.kind, constant.text)


def ids_of(kinds: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Return the ids of many constants."""
    return list(map(id_of, kinds, texts))


def small_constant(id_: int) -> Constant:
    """Return the constant of an id below `FIRST_DIGEST`."""
    return Constant(Kind.INTEGER, str(id_))


_SHORT = 19
"""An integer with fewer characters is an id by itself."""


class DigestCollisionError(EvermatError, RuntimeError):
    """Two constants have the same id, so the engine cannot distinguish them."""

    code: ClassVar[str] = "EM604"

    def __init__(self, first: str, second: str) -> None:
        super().__init__(
            f"`{first}` and `{second}` have the same digest",
            reason="ids of the Spark engine are digests of 62 bits",
            help="use the embedded engine, or change one of the two constants",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Constants in the order of their ids."""

    ids: Ids
    terms: pa.StructArray

    def find(self, wanted: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return the positions of ids, and whether they exist."""
        places = np.searchsorted(self.ids, wanted)
        found = np.zeros(wanted.size, np.bool_)
        inside = places < self.ids.size
        found[inside] = self.ids[places[inside]] == wanted[inside]
        return places, found


class Elsewhere(Protocol):
    """Constants that are not on the driver.

    Attributes:
        unsaved: frames of constants added since this list was last emptied; None to
            keep no list.
    """

    unsaved: list[DataFrame]

    def __len__(self) -> int:
        """Return the number of constants."""

    def find(self, ids: Ids) -> tuple[Ids, pa.StructArray]:
        """Return those of the ids that exist, and their constants."""

    def append(self, terms: pa.Table) -> None:
        """Add new constants: columns `id`, `kind` and `text`."""


class Dictionary:
    """Maps ids to constants and back.

    Args:
        elsewhere: the place for constants beyond the limit; None to keep all of them.
        limit: the number of constants that stay on the driver.
    """

    def __init__(self, elsewhere: Elsewhere | None = None, limit: int = 0) -> None:
        self.elsewhere = elsewhere
        self.limit = limit
        self._runs: list[_Run] = []
        self._fetched: list[_Run] = []
        """Copies of constants that are elsewhere."""
        self._unchecked: list[Ids] = []
        """Constants that have not been compared with those elsewhere yet."""
        self._known: dict[Constant, int] = {}
        self.version = 0
        """Increases when constants are added."""
        self.unsaved: list[_Run] | None = None
        """Constants added since this list was last emptied; None to keep no list."""

    def __len__(self) -> int:
        return self.size_here + (0 if self.elsewhere is None else len(self.elsewhere))

    @property
    def size_here(self) -> int:
        """The number of constants that are only on the driver."""
        return sum(run.ids.size for run in self._runs)

    # ------------------------------------------------------------- constants to ids

    def encode(self, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the ids of a column of constants; new constants are added."""
        encoded = encoded_column(column)
        self.add(encoded.ids, encoded.terms)
        return encoded.column

    def encode_constants(self, constants: Sequence[Constant]) -> list[int]:
        """Return the ids of individual constants; new ones are added."""
        ids = [constant_id(constant) for constant in constants]
        self.add(np.array(ids, np.int64), _term_column(constants))
        return ids

    def id_of(self, constant: Constant) -> int:
        """Return the id of a constant of a program; cached."""
        id_ = self._known.get(constant)
        if id_ is None:
            id_ = self._known[constant] = self.encode_constants([constant])[0]
        return id_

    def add(self, ids: Ids, terms: pa.StructArray) -> None:
        """Add constants with their ids; known ones are compared.

        Those that are elsewhere are compared later in one batch: see `reconcile`.

        Raises:
            DigestCollisionError: another constant has the same id.
        """
        large = ids >= FIRST_DIGEST
        ids, terms = ids[large], terms.filter(pa.array(large))
        for run in (*self._runs, *self._fetched):
            if not ids.size:
                return
            places, found = run.find(ids)
            _compare(terms.filter(pa.array(found)), run.terms.take(places[found]))
            ids, terms = ids[~found], terms.filter(pa.array(~found))
        if ids.size:
            new = _sorted_run(ids, terms)
            self._runs.append(new)
            if self.unsaved is not None:
                self.unsaved.append(new)
            if self.elsewhere is not None:
                self._unchecked.append(new.ids)
            _merge(self._runs)
            self.version += 1

    def reconcile(self) -> None:
        """Compare new constants with those elsewhere, and move them if there are many.

        Raises:
            DigestCollisionError: another constant has the same id; the new one is
                removed.
        """
        if self.elsewhere is None:
            return
        if self._unchecked and len(self.elsewhere):
            self._check(self.elsewhere, np.concatenate(self._unchecked))
        self._unchecked = []
        if self.size_here > self.limit:
            self.elsewhere.append(self.terms())
            self._runs, self._fetched = [], []
            self.version += 1

    def _check(self, elsewhere: Elsewhere, ids: Ids) -> None:
        known, terms = elsewhere.find(ids)
        if not known.size:
            return
        mine = self.decode(pa.array(known))
        # They exist elsewhere, so they are removed here, whether they are equal or not.
        self._runs = _without(self._runs, known)
        if self.unsaved is not None:
            self.unsaved = _without(self.unsaved, known)
        self.version += 1
        try:
            _compare(mine, terms)
        except DigestCollisionError:
            self._unchecked = []
            self._known.clear()
            raise
        self._keep(known, terms)

    def _keep(self, ids: Ids, terms: pa.StructArray) -> None:
        """Cache constants that are elsewhere, up to the limit."""
        if sum(run.ids.size for run in self._fetched) > self.limit:
            self._fetched = []
        self._fetched.append(_sorted_run(ids, terms))
        _merge(self._fetched)

    # ------------------------------------------------------------- ids to constants

    def decode(self, column: pa.Array | pa.ChunkedArray) -> pa.StructArray:
        """Return the constants of ids, as a column of terms."""
        ids = np.asarray(column.to_numpy(), np.int64)
        encoded = pa.array(ids).dictionary_encode()
        distinct: Ids = encoded.dictionary.to_numpy()
        if 2 * distinct.size > ids.size:
            return self._decode(ids)
        return self._decode(distinct).take(encoded.indices)

    def _decode(self, ids: Ids) -> pa.StructArray:
        is_number = ids < FIRST_DIGEST
        pool = [_integer_terms(ids[is_number])]
        places = np.empty(ids.size, np.int64)
        places[is_number] = np.arange(len(pool[0]))
        # The ids that are left to be found, by their position in the column.
        rest = np.flatnonzero(~is_number)
        for run in (*self._runs, *self._fetched):
            if rest.size:
                rest = _place(run, ids, rest, places, pool)
        if rest.size and self.elsewhere is not None:
            rest = _place(self._fetch(ids[rest]), ids, rest, places, pool)
        if rest.size:
            raise EngineUseError(
                f"no constant has the id {ids[rest[0]]}",
                help="the dictionary does not belong to these facts",
            )
        used = [terms for terms in pool if len(terms)]
        terms = used[0] if len(used) == 1 else pa.concat_arrays(pool)
        return terms.take(pa.array(places))

    def _fetch(self, ids: Ids) -> _Run:
        """Fetch constants that are elsewhere."""
        assert self.elsewhere is not None  # noqa: S101  see where it is called
        new = _sorted_run(*self.elsewhere.find(np.unique(ids)))
        if new.ids.size <= self.limit:
            self._keep(new.ids, new.terms)
        return new

    def terms(self) -> pa.Table:
        """Return the constants on the driver: columns `id`, `kind` and `text`."""
        return _listed(self._runs)

    def in_order(self) -> tuple[Ids, pa.StructArray]:
        """Return the constants on the driver in the order of their ids."""
        if len(self._runs) > 1:
            ids = np.concatenate([run.ids for run in self._runs])
            terms = pa.concat_arrays([run.terms for run in self._runs])
            self._runs = [_sorted_run(ids, terms)]
        if not self._runs:
            return np.empty(0, np.int64), pa.array([], TERM)
        return self._runs[0].ids, self._runs[0].terms

    def take_up(self, ids: Ids, terms: pa.StructArray) -> None:
        """Load constants in the order of their ids: for dictionaries without any."""
        self._runs = [_Run(ids, terms)] if ids.size else []
        self.version += 1

    def unsaved_terms(self) -> pa.Table:
        """Return the constants on the list of unsaved ones."""
        return _listed(self.unsaved or [])


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A column of ids, and their constants.

    Attributes:
        ids: each id once, or at least those that are not integers.
        terms: the constants of these.
    """

    column: pa.Array
    ids: Ids
    terms: pa.StructArray


def _place(
    run: _Run, ids: Ids, rest: Ids, places: Ids, pool: list[pa.StructArray]
) -> Ids:
    """Add a run to a pool, and record where its constants are; return the ids left."""
    at, found = run.find(ids[rest])
    places[rest[found]] = sum(map(len, pool)) + at[found]
    pool.append(run.terms)
    return rest[~found]


def _integer_terms(numbers: Ids) -> pa.StructArray:
    """Return the constants of ids that are integers themselves."""
    kinds = pa.array(np.full(numbers.size, Kind.INTEGER, np.uint8))
    texts = pa.array(numbers).cast(pa.string())
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def encoded_column(column: pa.Array | pa.ChunkedArray) -> Encoded:
    """Compute the ids of a column of constants, on the driver or in a task."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    if pa.types.is_integer(column.type) and column.null_count == 0:
        small = _small_integers(column)
        if small is not None:
            return Encoded(small, np.empty(0, np.int64), pa.array([], TERM))
    terms = as_terms(column)
    if isinstance(terms, pa.ChunkedArray):
        terms = terms.combine_chunks()
    kinds, texts = terms.field("kind"), terms.field("text")
    # One key for kind and text, so that each constant is hashed once.
    keys = pc.binary_join_element_wise(
        pc.cast(kinds, pa.string()), texts, "\0"
    ).dictionary_encode()
    first = _first_places(keys.indices.to_numpy(), len(keys.dictionary))
    distinct = terms.take(pa.array(first))
    ids = _ids(distinct.field("kind"), distinct.field("text"))
    return Encoded(pa.array(ids[keys.indices.to_numpy()]), ids, distinct)


def _merge(runs: list[_Run]) -> None:
    while len(runs) > 1 and runs[-2].ids.size < 2 * runs[-1].ids.size:
        right, left = runs.pop(), runs.pop()
        ids = np.concatenate([left.ids, right.ids])
        runs.append(_sorted_run(ids, pa.concat_arrays([left.terms, right.terms])))


def _without(runs: list[_Run], ids: Ids) -> list[_Run]:
    kept = []
    for run in runs:
        stays = ~np.isin(run.ids, ids)
        if stays.all():
            kept.append(run)
        elif stays.any():
            kept.append(_Run(run.ids[stays], run.terms.filter(pa.array(stays))))
    return kept


def _listed(runs: Sequence[_Run]) -> pa.Table:
    if not runs:
        empty = {"id": pa.int64(), "kind": pa.int32(), "text": pa.string()}
        return pa.schema(list(empty.items())).empty_table()
    terms = pa.concat_arrays([run.terms for run in runs])
    return pa.table(
        {
            "id": np.concatenate([run.ids for run in runs]),
            "kind": terms.field("kind").cast(pa.int32()),
            "text": terms.field("text"),
        }
    )


def _ids(kinds: pa.Array, texts: pa.Array) -> Ids:
    """Return the ids of constants; those of short integers are computed as a column."""
    ids = np.empty(len(kinds), np.int64)
    is_short = pc.and_(
        pc.equal(kinds, int(Kind.INTEGER)),
        pc.less(pc.binary_length(texts), _SHORT),
    )
    others = pc.invert(is_short)
    short = is_short.to_numpy(zero_copy_only=False)
    ids[short] = texts.filter(is_short).cast(pa.int64()).to_numpy()
    ids[~short] = ids_of(
        kinds.filter(others).to_pylist(), texts.filter(others).to_pylist()
    )
    return ids


def _small_integers(column: pa.Array) -> pa.Array | None:
    """Return a column of integers as ids, if all of them are small."""
    if len(column) == 0:
        return pa.array([], pa.int64())
    ends = pc.min_max(column)
    if ends["max"].as_py() >= FIRST_DIGEST or ends["min"].as_py() < -FIRST_DIGEST:
        return None
    return column.cast(pa.int64())


def _first_places(
    indices: npt.NDArray[np.integer], count: int
) -> npt.NDArray[np.int64]:
    """Return for each of `count` numbers a position where it occurs."""
    first = np.empty(count, np.int64)
    first[indices] = np.arange(indices.size)
    return first


def _sorted_run(ids: Ids, terms: pa.StructArray) -> _Run:
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    terms = terms.take(pa.array(order))
    new = np.ones(ids.size, np.bool_)
    new[1:] = ids[1:] != ids[:-1]
    if not new.all():
        same = np.flatnonzero(~new)
        _compare(terms.take(pa.array(same)), terms.take(pa.array(same - 1)))
        ids, terms = ids[new], terms.filter(pa.array(new))
    return _Run(ids, terms)


def _compare(first: pa.StructArray, second: pa.StructArray) -> None:
    if first.equals(second):
        return
    for one, other in zip(first.to_pylist(), second.to_pylist(), strict=True):
        if one != other:
            raise DigestCollisionError(
                *(str(Constant(Kind(e["kind"]), e["text"])) for e in (one, other))
            )


def _term_column(constants: Sequence[Constant]) -> pa.StructArray:
    return pa.StructArray.from_arrays(
        [
            pa.array([int(each.kind) for each in constants], pa.uint8()),
            pa.array([each.text for each in constants], pa.string()),
        ],
        fields=list(TERM),
    )
