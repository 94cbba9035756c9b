"""The stored numbers of facts: their changes in a transaction, and loading them.

A change consists of parts: sets of facts that are added or removed, and counts that
were added or subtracted. They are summed on the driver if all of them are there, and by
one plan otherwise.
"""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.engines.spark.blocks import local_block
from evermat.engines.spark.decoding import decoded
from evermat.engines.spark.row_tables import (
    NUMBERS,
    appended,
    chosen,
    key_columns,
    key_names,
    padded_keys,
)
from evermat.engines.spark.rows import block_rows, brought_home, local_rows
from evermat.engines.spark.session import parallelism

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from evermat.engines.spark.blocks import Block, Cluster, Origin
    from evermat.engines.spark.counters import Numbers
    from evermat.engines.spark.engine import SparkEngine
    from evermat.engines.spark.rows import Rows
    from evermat.engines.spark.stored_facts import StoredFacts

HOLDS, GIVEN, C_NR, C_R = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Facts, and by how much one of their numbers changes.

    Attributes:
        which: which of the numbers.
        sign: what the numbers of the facts, or one, is multiplied with.
        tags: the relations that may have facts.
        table: the facts, if they are on the driver, perhaps with a column `n`.
        query: for others, a query for the facts and for `n`, by the width.
        keeps: blocks whose views the query names.
        whole: the block that the facts are, if they are all of one on the cluster.
    """

    which: int
    sign: int
    width: int
    bound: int
    tags: frozenset[int]
    table: pa.Table | None = None
    query: Callable[[int], str] | None = None
    keeps: tuple[Block, ...] = ()
    whole: Block | None = None

    @property
    def origin(self) -> Origin | None:
        """Where all facts were written, perhaps with others."""
        kept = None if self.whole is None else self.whole.kept_in
        return None if kept is None or kept.number else kept.origin


def set_parts(which: int, sign: int, parts: Iterable[Rows]) -> Iterator[Part]:
    """Facts that come or leave, in parts that have none in common."""
    for rows in parts:
        if rows.table is not None:
            tags = frozenset(rows.sizes or ())
            yield Part(which, sign, rows.width, rows.bound, tags, rows.table)
            continue

        def query(width: int, rows: Rows = rows) -> str:
            return f"SELECT *, 1L AS n FROM ({rows.query(width)})"  # noqa: S608

        yield Part(
            which,
            sign,
            rows.width,
            rows.bound,
            rows.tags,
            query=query,
            keeps=rows.blocks,
            whole=rows.whole,
        )


def number_parts(which: int, new: Numbers, old: Numbers) -> Iterator[Part]:
    """Yield the counts that are only in the new or only in the old numbers.

    Common ones are skipped; levels are compared by identity.
    """
    for numbers, other, sign in ((new, old, 1), (old, new, -1)):
        for level in numbers.levels:
            if not any(level is each for each in other.levels):
                block, is_whole = level.block, not level.holes.bound
                # The query has the sign of the level, and scans of the block have not.
                yield Part(
                    which,
                    sign * (level.sign if is_whole else 1),
                    level.width,
                    block.size,
                    frozenset(block.sizes),
                    query=replace(level, sign=1).query if is_whole else level.query,
                    keeps=(block, *level.holes.blocks),
                    whole=block if is_whole else None,
                )
        local = numbers.local
        if local is not None and local is not other.local:
            tags = frozenset(local.sizes)
            yield Part(which, sign, local.width, local.size, tags, local.table)


@dataclass(frozen=True, slots=True)
class _Scan:
    """Facts, each once, with the changes of all numbers.

    Attributes:
        source: a query for the facts and what the numbers are made of, by the width.
        numbers: each of the numbers in SQL.
    """

    tags: frozenset[int]
    source: Callable[[int], str]
    numbers: tuple[str, ...]

    def query(self, width: int, tags: frozenset[int]) -> str:
        """The facts of some relations."""
        named = zip(self.numbers, NUMBERS, strict=True)
        columns = [*key_columns(width), *(f"{sql} AS {name}" for sql, name in named)]
        changed = " OR ".join(f"{sql} <> 0" for sql in self.numbers if sql != "0L")
        listed = ", ".join(f"{tag}L" for tag in sorted(tags))
        chosen_ = "" if tags >= self.tags else f" AND tag IN ({listed})"
        return (
            f"SELECT {', '.join(columns)} FROM ({self.source(width)}) "  # noqa: S608
            f"WHERE ({changed}){chosen_}"
        )


def _origin_scan(origin: Origin, parts: Sequence[Part]) -> _Scan:
    """All that changes by rows that were written together: they are scanned once."""
    numbers = ["0L"] * len(NUMBERS)
    for part in parts:
        kept = None if part.whole is None else part.whole.kept_in
        is_count = part.which in {C_NR, C_R} and "n" in origin.columns
        value = "n" if is_count and not (kept and kept.ones) else "1L"
        if kept and kept.only_new:
            value = f"IF(old, 0L, {value})"
        before = numbers[part.which]
        start = "" if before == "0L" else f"{before} + "
        numbers[part.which] = f"{start}{part.sign} * {value}"

    def source(width: int) -> str:
        names = padded_keys(origin.width, width)
        names += [name for name in ("n", "old") if name in origin.columns]
        return f"SELECT {', '.join(names)} FROM {origin.view}"  # noqa: S608

    tags = frozenset(tag for part in parts for tag in part.tags)
    sums = tuple(sql if sql == "0L" else f"({sql})" for sql in numbers)
    return _Scan(tags, source, sums)


def _part_scan(part: Part, query: Callable[[int], str]) -> _Scan:
    numbers = tuple(
        f"{part.sign} * n" if at == part.which else "0L" for at in range(len(NUMBERS))
    )
    return _Scan(part.tags, query, numbers)


class Difference:
    """The changes of the stored numbers of facts."""

    def __init__(
        self, cluster: Cluster, arities: Mapping[str, int], parts: list[Part]
    ) -> None:
        self.cluster = cluster
        self._arities = dict(arities)
        self._parts = [part for part in parts if part.bound]
        self._table: pa.Table | None = None
        if all(part.table is not None for part in self._parts):
            self._table = _summed([_spread(part) for part in self._parts])

    @property
    def table(self) -> pa.Table | None:
        """Return `relation`, `c0`, … and the numbers, if all is on the driver."""
        if self._table is None:
            return None
        names = pa.array(self.cluster.names, pa.string())
        relations = names.take(self._table["tag"].combine_chunks())
        return self._table.rename_columns(
            [*key_names(self._table), *STORED_NUMBERS]
        ).set_column(0, "relation", relations)

    def frame(self) -> DataFrame:
        """Return the same as a frame of Spark."""
        cluster = self.cluster
        if self._table is not None:
            sql = f"SELECT * FROM {self._view(self._table)}"  # noqa: S608
        else:
            sql = self._query()
        names = self._view(
            pa.table({"tag": range(len(cluster.names)), "relation": cluster.names})
        )
        columns = ", ".join(f"l.c{at}" for at in range(self._width))
        numbers = ", ".join(
            f"CAST({old} AS BIGINT) AS {new}"
            for old, new in zip(NUMBERS, STORED_NUMBERS, strict=True)
        )
        return cluster.sql(
            f"SELECT /*+ BROADCAST(r) */ relation, {columns}, {numbers} "  # noqa: S608
            f"FROM ({sql}) l JOIN {names} r ON l.tag = r.tag"
        )

    def _view(self, table: pa.Table) -> str:
        """Register a table for the lifetime of this object.

        Frames keep the contents of their views, even after the views are dropped.
        """
        view = self.cluster.register_table(table)
        weakref.finalize(self, self.cluster.waste.append, (view, None))
        return view

    @property
    def _width(self) -> int:
        return max((part.width for part in self._parts), default=1)

    def _scans(self) -> Iterator[_Scan]:
        """What has to be scanned, what was written together once."""
        together: dict[Origin, list[Part]] = {}
        for part in self._parts:
            if part.origin is not None:
                together.setdefault(part.origin, []).append(part)
            elif part.query is not None:
                yield _part_scan(part, part.query)
            else:
                view = self._view(_counted(part.table))
                yield _part_scan(part, _scan(view, part.width))
        for origin, parts in together.items():
            yield _origin_scan(origin, parts)

    def _query(self) -> str:
        """The sums of all parts; facts of relations that are in one scan are sums."""
        width, scans = self._width, list(self._scans())
        times = Counter(tag for scan in scans for tag in scan.tags)
        alone = frozenset(tag for tag, number in times.items() if number == 1)
        whole = [scan.query(width, alone) for scan in scans if scan.tags & alone]
        rest = [
            scan.query(width, scan.tags - alone) for scan in scans if scan.tags - alone
        ]
        if rest:
            sums = ", ".join(f"sum({name}) AS {name}" for name in NUMBERS)
            changed = " OR ".join(f"sum({name}) <> 0" for name in NUMBERS)
            keys = ", ".join(key_columns(width))
            whole.append(
                f"SELECT {keys}, {sums} FROM ({' UNION ALL '.join(rest)}) "  # noqa: S608
                f"GROUP BY {keys} HAVING {changed}"
            )
        tasks = parallelism(self.cluster.session)
        together = " UNION ALL ".join(f"({each})" for each in whole)
        return f"SELECT /*+ COALESCE({tasks}) */ * FROM ({together})"  # noqa: S608

    def _collected(self) -> pa.Table:
        if self._table is None:
            self._table = self.cluster.collect(self._query())
        return self._table

    def relations(self) -> Mapping[str, int]:
        """Return the number of rows of each relation that has any."""
        table = self._collected()
        if not table.num_rows:
            return {}
        counts = pc.value_counts(table["tag"])
        names = self.cluster.names
        return {names[c["values"].as_py()]: c["counts"].as_py() for c in counts}

    def read(self, relation: str) -> pa.Table:
        """Return the facts as columns of terms, and a column for each number."""
        rows = chosen(self._collected(), frozenset({self.cluster.tags[relation]}))
        table = decoded(self.cluster, rows, self._arities[relation])
        for old, new in zip(NUMBERS, STORED_NUMBERS, strict=True):
            table = table.append_column(new, rows[old].cast(pa.int64()))
        return table


def _scan(view: str, known: int) -> Callable[[int], str]:
    def query(width: int) -> str:
        keys = ", ".join(padded_keys(known, width))
        return f"SELECT {keys}, n FROM {view}"  # noqa: S608

    return query


def _counted(table: pa.Table) -> pa.Table:
    """Return facts with a count each."""
    if "n" in table.column_names:
        return table
    return table.append_column("n", pa.array([1] * table.num_rows, pa.int64()))


def _spread(part: Part) -> pa.Table:
    """Return the facts of a part on the driver, with all four numbers."""
    table = _counted(part.table)
    numbers = pc.multiply(table["n"], part.sign)
    nothing = pc.multiply(table["n"], 0)
    table = table.select(key_names(table))
    for at, name in enumerate(NUMBERS):
        table = table.append_column(name, numbers if at == part.which else nothing)
    return table


def _summed(tables: list[pa.Table]) -> pa.Table:
    if not tables:
        names = ["tag", "c0", *NUMBERS]
        return pa.table({name: pa.array([], pa.int64()) for name in names})
    table = appended(tables)
    keys = key_names(table)
    total = table.group_by(keys, use_threads=False).aggregate(
        [(name, "sum") for name in NUMBERS]
    )
    total = total.rename_columns([*keys, *NUMBERS])
    changed = [pc.not_equal(total[name], 0) for name in NUMBERS]
    either = changed[0]
    for each in changed[1:]:
        either = pc.or_(either, each)
    return total.filter(either)


# --------------------------------------------------------------------- taking up


def take_up_table(engine: SparkEngine, table: pa.Table) -> None:
    """Change what is stored by facts on the driver: `tag`, `c0`, …, and the numbers."""
    cluster, keys = engine.cluster, key_names(table)
    for name, stored in (("holds", engine.materialised), ("given", engine.explicit)):
        gone = table.filter(pc.less(table[name], 0)).select(keys)
        rows = table.filter(pc.greater(table[name], 0)).select(keys)
        stored.heap.remove(local_rows(cluster, gone))
        stored.heap.add(local_block(cluster, rows))
    for name, counters in (
        ("n_nr", engine.nonrecursive_counts),
        ("n_r", engine.recursive_counts),
    ):
        rows = table.filter(pc.not_equal(table[name], 0)).select([*keys, name])
        counters.append(local_block(cluster, rows.rename_columns([*keys, "n"])))


def take_up_frame(engine: SparkEngine, frame: DataFrame) -> None:
    """The same for facts on the cluster, each of them once.

    Args:
        engine: knows all relations.
        frame: `relation`, `c0` and so on, and the numbers.
    """
    cluster = engine.cluster
    frame = frame.cache()
    view = cluster.register(frame)
    names = cluster.register_table(
        pa.table({"tag": range(len(cluster.names)), "relation": cluster.names})
    )
    width = sum(name[0] == "c" and name[1:].isdigit() for name in frame.columns)
    keys = key_columns(width)
    # The partitioning of a block is used by later rounds.
    source = (
        f"SELECT /*+ BROADCAST(r) */ CAST(r.tag AS BIGINT) AS tag, "  # noqa: S608
        f"{', '.join(keys[1:])}, holds, given, c_nr AS n_nr, c_r AS n_r "
        f"FROM {view} l JOIN {names} r ON l.relation = r.relation "
        f"DISTRIBUTE BY tag, {', '.join(keys[1:])}"
    )
    facts, tags = ", ".join(keys), range(len(cluster.names))

    def block(what: str, condition: str) -> Block:
        sql = f"SELECT {what} FROM ({source}) WHERE {condition}"  # noqa: S608
        return brought_home(cluster.checkpoint(sql, width, tags))

    for name, stored in (("holds", engine.materialised), ("given", engine.explicit)):
        stored.heap.remove(block_rows(block(facts, f"{name} < 0")))
        stored.heap.add(block(facts, f"{name} > 0"))
    for name, counters in (
        ("n_nr", engine.nonrecursive_counts),
        ("n_r", engine.recursive_counts),
    ):
        counters.append(block(f"{facts}, {name} AS n", f"{name} <> 0"))
    cluster.waste += [(view, frame), (names, None)]


def use_in_place(engine: SparkEngine, facts: StoredFacts) -> None:
    """Have an engine without facts use those of a state where they lie."""
    for name, stored in (("holds", engine.materialised), ("given", engine.explicit)):
        stored.heap.add(facts.block(name))
    for name, counters in (
        ("n_nr", engine.nonrecursive_counts),
        ("n_r", engine.recursive_counts),
    ):
        counters.append(facts.block(name))
