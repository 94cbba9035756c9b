"""Facts used where they lie: in the Parquet files of a state.

Opening a state reads none of its facts. Files that were written together have each fact
once, with its four numbers; what holds, what is explicit and both counters are blocks
over them. Few facts are looked up by their keys, in the row groups whose statistics
allow for them: by the driver, or by tasks where these have many rows. Plans over many
facts scan the row groups of the relations that they name.

Files are written for that: rows in the order of relations and first arguments, large
relations in row groups of their own, and with the sums of each relation in the footer.
"""

from __future__ import annotations

import json
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.engines.spark.blocks import Block, KeptIn, Origin
from evermat.engines.spark.row_keys import Shape
from evermat.engines.spark.row_tables import NUMBERS, key_columns, key_names
from evermat.engines.spark.session import parallelism, read_from_cache
from evermat.engines.spark.summaries import Summary
from evermat.engines.spark.task_files import ROWS_IN_A_GROUP as ROWS_IN_A_TASK
from evermat.engines.spark.task_files import Layout, shared_out
from evermat.engines.spark.tasks import map_in_tasks
from evermat.io.digested_parquet import DamagedParquetError, DigestedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy.typing as npt
    import pyarrow.parquet as pq
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame

    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.row_keys import Ids, Keys
    from evermat.engines.spark.task_files import Open

    Ends = Mapping[str, tuple[int, int]]
    """The least and the largest value of columns."""
    Read = Callable[[Sequence["_Piece"]], Iterator[pa.Table]]

RELATION = "relation"
ROWS_IN_A_GROUP = 1 << 17
LARGE = 1 << 13
"""Rows of a relation from which on it has row groups of its own."""
ROWS_HERE = 1 << 25
"""Rows of row groups up to which the driver looks into them: a job has a fixed cost."""
_SUMS = b"evermat.sums"
_OPENED_AT_ONCE = 16


# --------------------------------------------------------------------------- writing


class FactLayout(Layout):
    """Arranges the facts of a file that is written, and sums up what is in it."""

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, int]] = Counter()

    def arranged(self, facts: pa.Table) -> Iterator[pa.Table]:
        """Facts as row groups, in the order of relations and first arguments."""
        for (name, at), number in _sums(facts).items():
            self._sums[name, at] += number
        names = facts[RELATION].combine_chunks().dictionary_encode()
        if isinstance(names, pa.ChunkedArray):
            names = names.combine_chunks()
        ranks = np.argsort(np.argsort(np.array(names.dictionary.to_pylist(), object)))
        relations = ranks[names.indices.to_numpy()]
        order = np.lexsort((_column(facts, "c1"), _column(facts, "c0"), relations))
        facts = facts.take(pa.array(order))
        ends = np.cumsum(np.bincount(relations)).tolist()
        for start, end in _cuts(ends):
            yield facts.slice(start, end - start)

    def notes(self) -> dict[bytes, str]:
        """What the footer says about the file."""
        return {_SUMS: json.dumps(_by_relation(self._sums))}


def _cuts(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where row groups begin and end, of relations that end in some places."""
    begin = start = 0
    for end in ends:
        if end - start >= LARGE:
            if start > begin:
                yield begin, start
            for at in range(start, end, ROWS_IN_A_GROUP):
                yield at, min(end, at + ROWS_IN_A_GROUP)
            begin = end
        elif end - begin >= ROWS_IN_A_GROUP:
            yield begin, end
            begin = end
        start = end
    if start > begin:
        yield begin, start


def _sums(facts: pa.Table) -> dict[tuple[str, int], int]:
    """For each relation and number: how many facts have it, and its sum."""
    columns = {RELATION: facts[RELATION].cast(pa.string())}
    for at, name in enumerate(STORED_NUMBERS):
        number = facts[name].fill_null(0)
        columns[f"{2 * at}"] = pc.not_equal(number, 0).cast(pa.int64())
        columns[f"{2 * at + 1}"] = number
    names = [name for name in columns if name != RELATION]
    groups = pa.table(columns).group_by(RELATION, use_threads=False)
    found = groups.aggregate([(name, "sum") for name in names]).to_pydict()
    return {
        (relation, int(name)): number
        for name in names
        for relation, number in zip(found[RELATION], found[f"{name}_sum"], strict=True)
    }


def _by_relation(sums: Mapping[tuple[str, int], int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for (name, at), number in sums.items():
        found.setdefault(name, [0] * (2 * len(NUMBERS)))[at] = number
    return found


# --------------------------------------------------------------------- files and groups


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group, and what its statistics say.

    Attributes:
        first: the first relation, in the order of names.
        last: the last one; None if nobody knows.
    """

    number: int
    rows: int
    first: str
    last: str | None
    ends: Ends

    def may_have(self, relation: str) -> bool:
        """Whether facts of a relation may be in it."""
        return self.first <= relation and (self.last is None or relation <= self.last)


@dataclass(frozen=True, slots=True)
class _File:
    """A file, and what its footer says."""

    path: str
    digest: str | None
    groups: tuple[_Group, ...]
    sums: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some row groups of a file."""

    path: str
    digest: str | None
    groups: tuple[int, ...]
    rows: int


def _opened(storage: Open, path: str, digest: str | None) -> _File:
    """What the footer of a file says; older files do not have sums in it."""
    with storage().open_input_file(path) as stream:
        file = _parquet(stream, path, digest)
        metadata = file.metadata
        groups = tuple(_group(metadata, at) for at in range(metadata.num_row_groups))
        notes = metadata.metadata or {}
        if _SUMS in notes:
            return _File(path, digest, groups, json.loads(notes[_SUMS]))
        sums = Counter[tuple[str, int]]()
        for group in groups:
            for key, number in _sums(_group_of(file, path, group.number)).items():
                sums[key] += number
        return _File(path, digest, groups, _by_relation(sums))


def _group(metadata: pq.FileMetaData, number: int) -> _Group:
    group = metadata.row_group(number)
    found = {}
    for at in range(group.num_columns):
        column = group.column(at)
        statistics = column.statistics
        if statistics is not None and statistics.has_min_max:
            found[column.path_in_schema] = statistics.min, statistics.max
    first, last = found.pop(RELATION, ("", None))
    ends = {name: both for name, both in found.items() if name[0] == "c"}
    return _Group(number, group.num_rows, first, last, ends)


def _parquet(stream: pa.NativeFile, path: str, digest: str | None) -> pq.ParquetFile:
    try:
        return DigestedFile(stream, digest).parquet
    except DamagedParquetError as error:
        raise _damaged(path, error) from error


def _group_of(
    file: pq.ParquetFile, path: str, number: int, names: Sequence[str] | None = None
) -> pa.Table:
    try:
        return file.read_row_group(number, columns=names, use_threads=False)
    except (DamagedParquetError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> DamagedParquetError:
    return DamagedParquetError(f"`{path}` is damaged: {error}")


# ------------------------------------------------------------------------ the facts


@dataclass(frozen=True, slots=True)
class Wanted:
    """Facts of a relation by the values in some positions.

    Attributes:
        keys: the numbers that `shape` gives to these values together.
        columns: the values of each position, in order.
    """

    relation: str
    shape: Shape
    keys: Keys
    columns: Mapping[int, Ids]

    def may_be_in(self, group: _Group) -> bool:
        """Whether some of the facts may be in a row group."""
        if not group.may_have(self.relation):
            return False
        for at, values in self.columns.items():
            least, largest = group.ends.get(f"c{at}", (None, None))
            if least is not None and largest is not None:
                place = np.searchsorted(values, least)
                if place == values.size or values[place] > largest:
                    return False
        return True

    def places(self, rows: pa.Table, *, is_alone: bool) -> npt.NDArray[np.int64]:
        """Where the facts are among some rows."""
        mine = None if is_alone else pc.equal(rows[RELATION], self.relation)
        for at, wanted_ in self.columns.items():
            column = pa.array(_column(rows, f"c{at}"))
            has_value = pc.is_in(column, value_set=pa.array(wanted_))
            mine = has_value if mine is None else pc.and_(mine, has_value)
        if mine is None:
            return np.arange(rows.num_rows)
        places = np.flatnonzero(np.asarray(mine))
        values = {at: _column(rows, f"c{at}")[places] for at in self.columns}
        keys = self.shape.keys(values, places.size)
        return places[np.isin(keys, self.keys)]


@dataclass(eq=False)
class StoredFacts:
    """Facts of a state, each of them once.

    Args:
        storage: opens the folder of the state, in tasks too.
        paths: the files, and their digests.
        width: how many arguments facts can have.
        reading: says which file is damaged when one cannot be read.
    """

    cluster: Cluster
    storage: Open
    paths: Sequence[tuple[str, str | None]]
    width: int
    reading: Callable[[], AbstractContextManager[None]] = nullcontext
    _views: dict[frozenset[int] | None, str] = field(default_factory=dict)

    @cached_property
    def files(self) -> list[_File]:
        """The files; their footers are all that is read of them."""
        with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
            opened = partial(_opened, self.storage)
            return list(pool.map(opened, *zip(*self.paths, strict=True)))

    @cached_property
    def sums(self) -> Mapping[str, Sequence[int]]:
        """For each relation and number: how many facts have it, and its sum."""
        total = Counter[tuple[str, int]]()
        for file in self.files:
            for name, numbers in file.sums.items():
                for at, number in enumerate(numbers):
                    total[name, at] += number
        return _by_relation(total)

    @property
    def only_adds(self) -> bool:
        """Whether all facts hold or are given that have such a number at all.

        Changes of what came before take facts away as well.
        """
        return all(
            sums[2 * at] == sums[2 * at + 1]
            for sums in self.sums.values()
            for at in (0, 1)
        )

    @property
    def instances(self) -> int:
        """For how many rule instances the counts stand."""
        given, n_nr, n_r = (2 * NUMBERS.index(name) + 1 for name in NUMBERS[1:])
        return sum(each[n_nr] + each[n_r] - each[given] for each in self.sums.values())

    def block(self, number: str) -> Block:
        """The facts that have a number, with it."""
        at, tag = 2 * NUMBERS.index(number), self.cluster.tag
        sums = {tag(name): each for name, each in self.sums.items() if each[at]}
        block = Block(self.cluster, self.width, None, None)
        block.know(
            Summary(
                {name: each[at] for name, each in sums.items()},
                {name: each[at + 1] for name, each in sums.items()},
            )
        )
        block.kept_in = KeptIn(self._origin, number=number)
        return block

    @cached_property
    def _origin(self) -> Origin:
        return Origin("", self.width, frozenset(), self)

    # -------------------------------------------------------------------- looking up

    def find(self, wants: Sequence[Wanted]) -> pa.Table:
        """Facts by their values: `tag`, `c0` and so on, and the numbers."""
        pieces = self._pieces(
            lambda group: any(each.may_be_in(group) for each in wants)
        )
        look = partial(_looked_up, self.storage, self._tags(), self.width, wants)
        with self.reading():
            if sum(piece.rows for piece in pieces) > ROWS_HERE:
                frame = _in_tasks(self.cluster, self.width, look, pieces)
                return self.cluster.arrow(frame)
            found = list(look(pieces))
        return pa.concat_tables(found) if found else _nothing(self.width)

    def find_facts(self, facts: pa.Table) -> pa.Table:
        """Those of some facts that are there, with their numbers."""
        names, wants = self.cluster.names, []
        columns = [name for name in key_names(facts)[1:] if int(name[1:]) < self.width]
        for tag in pc.unique(facts["tag"]).to_pylist():
            rows = facts.filter(pc.equal(facts["tag"], tag))
            values = {int(name[1:]): rows[name].to_numpy() for name in columns}
            wants.append(
                wanted(
                    names[tag],
                    Shape(tag, tuple(range(len(columns)))),
                    values,
                    rows.num_rows,
                )
            )
        return self.find(wants)

    # ------------------------------------------------------------------------ reading

    def read(self, number: str, tags: frozenset[int]) -> pa.Table:
        """The facts of some relations that have a number, on the driver."""
        names = self._tags(tags)
        with self.reading():
            pieces = self._pieces_of(names)
            found = list(_facts(self.storage, names, self.width, pieces))
        rows = pa.concat_tables(found) if found else _nothing(self.width)
        rows = rows.filter(pc.not_equal(rows[number], 0))
        return rows.select(key_columns(self.width))

    def query(self, number: str, tags: frozenset[int] | None = None) -> str:
        """A query for the facts that have a number, `n`; some have other relations."""
        keys = ", ".join(key_columns(self.width))
        view = self._view(tags)
        return f"(SELECT {keys}, {number} AS n FROM {view} WHERE {number} <> 0)"  # noqa: S608

    def _view(self, tags: frozenset[int] | None) -> str:
        if tags not in self._views:
            cluster, names, width = self.cluster, self._tags(tags), self.width
            pieces = self._pieces_of(names)
            rows = sum(piece.rows for piece in pieces)
            read = partial(_facts, self.storage, names, width)
            frames: list[DataFrame] = []

            def make() -> DataFrame:
                frames.append(_in_tasks(cluster, width, read, pieces).cache())
                return read_from_cache(frames[0], rows)

            view = self._views[tags] = cluster.promise(make, rows)
            weakref.finalize(self, _forget, cluster, view, frames)
        return self._views[tags]

    def _tags(self, tags: frozenset[int] | None = None) -> dict[str, int]:
        """The numbers of relations."""
        every = {name: self.cluster.tag(name) for name in self.sums}
        return {name: tag for name, tag in every.items() if tags is None or tag in tags}

    def _pieces_of(self, names: Mapping[str, int]) -> list[_Piece]:
        return self._pieces(lambda group: any(map(group.may_have, names)))

    def _pieces(self, may_have: Callable[[_Group], bool]) -> list[_Piece]:
        """The row groups in which there may be something, the most rows first."""
        found = []
        for file in self.files:
            groups, rows = [], 0
            for group in filter(may_have, file.groups):
                groups.append(group.number)
                rows += group.rows
                if rows >= ROWS_IN_A_TASK:
                    found.append(_Piece(file.path, file.digest, tuple(groups), rows))
                    groups, rows = [], 0
            if groups:
                found.append(_Piece(file.path, file.digest, tuple(groups), rows))
        return sorted(found, key=lambda piece: -piece.rows)


def _in_tasks(
    cluster: Cluster, width: int, read: Read, pieces: Sequence[_Piece]
) -> DataFrame:
    """What tasks read, each some of the pieces."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  optional

    session = cluster.session
    shares = shared_out(pieces, parallelism(session))
    numbers = session.range(0, len(shares), 1, max(len(shares), 1))
    schema = from_arrow_schema(_nothing(width).schema)
    return map_in_tasks(numbers, partial(_task, read, shares), schema)


def _forget(cluster: Cluster, view: str, frames: Sequence[DataFrame]) -> None:
    """Have a view, and what is cached of it, removed."""
    cluster.waste.append((view, frames[0] if frames else None))


def wanted(
    relation: str, shape: Shape, columns: Mapping[int, Ids], size: int
) -> Wanted:
    """Facts that have the values of some rows."""
    keys = np.unique(shape.keys(columns, size))
    return Wanted(relation, shape, keys, {at: np.unique(columns[at]) for at in columns})


# ------------------------------------------------------- what runs here, or in tasks


def _task(
    read: Read, shares: Sequence[Sequence[_Piece]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the shares with the numbers in the batches."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for table in read(shares[number]):
                yield from table.to_batches()


def _looked_up(
    storage: Open,
    tags: Mapping[str, int],
    width: int,
    wants: Sequence[Wanted],
    pieces: Sequence[_Piece],
) -> Iterator[pa.Table]:
    """The facts among pieces that are wanted."""
    positions = sorted({at for each in wants for at in each.columns})
    names = [RELATION, *(f"c{at}" for at in positions)]
    for file, piece, number in _groups(storage, pieces):
        group = _group(file.metadata, number)
        mine = [each for each in wants if each.may_be_in(group)]
        there = [name for name in names if name in file.schema_arrow.names]
        rows = _group_of(file, piece.path, number, there)
        is_alone = group.first == group.last
        places = [each.places(rows, is_alone=is_alone) for each in mine]
        chosen = np.unique(np.concatenate(places)) if places else np.empty(0, np.int64)
        if chosen.size:
            rows = _group_of(file, piece.path, number).take(pa.array(chosen))
            yield _as_plans_have_it(rows, tags, width)


def _facts(
    storage: Open, tags: Mapping[str, int], width: int, pieces: Sequence[_Piece]
) -> Iterator[pa.Table]:
    """The facts of some relations among pieces."""
    for file, piece, number in _groups(storage, pieces):
        rows = _group_of(file, piece.path, number)
        yield _as_plans_have_it(rows, tags, width)


def _groups(
    storage: Open, pieces: Sequence[_Piece]
) -> Iterator[tuple[pq.ParquetFile, _Piece, int]]:
    system: FileSystem = storage()
    for piece in pieces:
        with system.open_input_file(piece.path) as stream:
            file = _parquet(stream, piece.path, piece.digest)
            for number in piece.groups:
                yield file, piece, number


def _as_plans_have_it(rows: pa.Table, tags: Mapping[str, int], width: int) -> pa.Table:
    """Facts of some relations with their tags, and all columns that there can be."""
    places = pc.index_in(rows[RELATION], pa.array(list(tags), pa.string()))
    if places.null_count:
        rows = rows.filter(pc.is_valid(places))
        places = places.drop_null()
    columns = [pa.array(list(tags.values()), pa.int64()).take(places)]
    names = [*(f"c{at}" for at in range(width)), *STORED_NUMBERS]
    columns += [pa.array(_column(rows, name)) for name in names]
    return pa.table(columns, names=[*key_columns(width), *NUMBERS])


def _column(rows: pa.Table, name: str) -> Ids:
    """A column of numbers, which are 0 where there are none."""
    if name not in rows.column_names:
        return np.zeros(rows.num_rows, np.int64)
    return np.asarray(rows[name].fill_null(0).to_numpy(), np.int64)


def _nothing(width: int) -> pa.Table:
    names = [*key_columns(width), *NUMBERS]
    return pa.table({name: pa.array([], pa.int64()) for name in names})
