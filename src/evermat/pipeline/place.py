"""Decides where a run works: with the embedded engine on the driver, or distributed.

The decision is made once, before anything is loaded, by the expected number of facts
and the number that fits into memory. Parquet files and states know their number of
rows; for files of lines, it is estimated from the first lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from evermat.engines.spark.limits import SMALL, facts_in_memory, limit_of
from evermat.errors import EvermatError
from evermat.pipeline.change_files import Ledger, unseen_files
from evermat.pipeline.config import DATABASE_FORMATS, LINE_FORMATS
from evermat.pipeline.files import find_files, opened
from evermat.pipeline.intake import opened_parquet
from evermat.pipeline.program import stored_state
from evermat.pipeline.spark_session import has_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from evermat.pipeline.config import Config, Source
    from evermat.pipeline.files import File

    Name = Literal["driver", "distributed", "auto"]

GROWTH = 3
"""So many facts are expected for each that is given, before rules ever ran."""
_SAMPLE = 1 << 18
_FOOTERS = 16
"""Parquet files whose number of rows is read; others are assumed to be similar."""
_PACKED = 5
"""Bytes of text per byte of a compressed file."""
_BYTES_OF_TRIPLE = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run works, and why.

    Attributes:
        name: `auto` if the engine has to find out.
        room: the number of facts that fit on the driver; None for any number.
    """

    name: Name
    reason: str
    room: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose_place(
    config: Config, command: str, spark: Callable[[], SparkSession]
) -> Place:
    """Decide where a run of a pipeline on Spark works.

    Args:
        config: the configuration.
        command: `run` or `update`.
        spark: returns a session; not called if settings are known without it.
    """
    settings = config.engine
    if settings.place != "auto":
        return Place(settings.place, "[engine] says so")
    setting = _setting("spark.evermat.driver_facts", config, spark)
    room = limit_of("driver_facts", setting, _room(config))
    if not room:
        return Place("distributed", "there is no room for facts on the driver")
    facts = _expected(config, command)
    if facts is None:
        return Place("auto", f"sizes of tables are not known, room for {room:,} facts")
    reason = f"about {facts:,} facts, room for {room:,}"
    return Place("driver" if facts <= room else "distributed", reason, room)


def _room(config: Config) -> Callable[[], int]:
    heap = dict(config.engine.conf).get("spark.driver.memory", "0")
    return lambda: facts_in_memory(heap)


def is_for_driver(
    source: Source,
    paths: Sequence[str],
    config: Config,
    spark: Callable[[], SparkSession],
) -> bool:
    """Whether the driver reads files of a source, though facts are distributed.

    There are as few rows as in sets that are on the driver: a job has a fixed cost.
    """
    small = _setting("spark.evermat.small", config, spark)
    rows = _rows_of(source, partial(find_files, paths, source.folder))
    return rows <= limit_of("small", small, lambda: SMALL)


def _setting(
    name: str, config: Config, spark: Callable[[], SparkSession]
) -> str | None:
    """What the session says, or would say."""
    if has_session():
        return spark().conf.get(name, None)
    return dict(config.engine.conf).get(name)


def _expected(config: Config, command: str) -> int | None:
    """Estimate the number of facts; None if that is not possible."""
    state, given = stored_state(config), 0
    for source in config.sources:
        if command == "update" and source.has_changes and state is not None:
            ledger = Ledger(state.ledger(source.name))
            given += _rows_of(source, partial(unseen_files, source, ledger))
        elif source.format in DATABASE_FORMATS:
            if state is None:
                return None
        else:
            given += _rows_of(source, partial(find_files, source.paths, source.folder))
    # Derived facts are known from the last run. New rows are added to the old ones.
    return GROWTH * given if state is None else state.rows + given


def _rows_of(source: Source, find: Callable[[], Iterable[File]]) -> int:
    """Estimate the number of facts in the files of a source."""
    try:
        return _rows(source, list(find())) * max(1, len(source.facts))
    except (EvermatError, OSError, pa.ArrowException):
        return 0  # reading the source will report the error


def _rows(source: Source, files: Sequence[File]) -> int:
    size: int = sum(file.size for file in files)
    if not size:
        return 0
    if source.format == "parquet":
        some = files[:_FOOTERS]
        rows: int = sum(opened_parquet(file).metadata.num_rows for file in some)
        return rows * size // max(1, sum(file.size for file in some))
    largest = max(files, key=lambda file: file.size)
    if largest.compression is not None:
        size *= _PACKED
    if source.format not in LINE_FORMATS:
        return size // _BYTES_OF_TRIPLE
    with opened(largest) as stream:
        sample: bytes = stream.read(_SAMPLE)
    lines = max(1, sample.count(b"\n"))
    return size * lines // max(1, len(sample))
