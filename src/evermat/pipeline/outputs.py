"""Results to where they are wanted: folders of files, or tables of Spark.

A folder that is written in full is replaced as a whole once all of it is there. A
change feed has one file for each version, so that writing a version twice is harmless.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.columns import for_spark, natural, table_of_rows, term_table
from evermat.io.ntriples import warn_of_left_out
from evermat.pipeline.config import output_place
from evermat.pipeline.feeds import (
    ADDED,
    REMOVED,
    add_large_version,
    add_version,
    feed_names,
    last_version,
    signed,
)
from evermat.pipeline.problems import plain_output_errors
from evermat.pipeline.written_files import replace_folder, write_file
from evermat.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    from evermat.api import KnowledgeBase
    from evermat.pipeline.config import Output
    from evermat.results.change import Change
    from evermat.values import Value


@dataclass(frozen=True, slots=True)
class Written:
    """An output that was written."""

    output: Output
    what: str
    place: str
    rows: int


class Publisher:
    """Writes the outputs of a version of a knowledge base."""

    def __init__(
        self,
        kb: KnowledgeBase,
        change: Change | None,
        version: int,
        spark: Callable[[], SparkSession],
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Make a publisher.

        Args:
            kb: what holds now.
            change: what came and left; None where nothing asks for it.
            version: the number of what holds now.
            spark: gives a session, for outputs that are tables of Spark.
            options: how to get to the state, as `deltalake` takes them.
        """
        self._kb = kb
        self._change = change
        self._version = version
        self._spark = spark
        self._options = options

    def write(self, output: Output) -> Iterator[Written]:
        """Write an output, one place for each predicate.

        Raises:
            OutputError: the place cannot be written to.
        """
        if output.query is not None:
            yield self._put(output, output.name, self._kb.query(output.query))
            return
        for predicate in output.predicates:
            if output.mode == "changes":
                yield self._put_changes(output, predicate)
            else:
                yield self._put(output, predicate, self._kb.facts(predicate))

    def _missed(
        self, predicate: str, last: int | None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Versions of the state that a feed does not have, though it has older ones.

        A run that ended between commit and feed leaves such a gap, and so does
        everybody else who changes the state.
        """
        if last is None or self._kb.state is None or last >= self._version - 1:
            return
        from evermat.lake import changes  # noqa: PLC0415  needs a library

        found: dict[int, dict[str, list[tuple[Value, ...]]]] = {}
        until = self._version - 1
        state, options = self._kb.state, self._options
        for each in changes(state, since=last, until=until, storage_options=options):
            if each.predicate == predicate:
                signs = found.setdefault(each.version, {ADDED: [], REMOVED: []})
                signs[each.sign].append(each.values)
        arity = self._kb.predicates[predicate]
        for version, signs in found.items():
            came, left = (
                term_table(table_of_rows(signs[sign], arity))
                for sign in (ADDED, REMOVED)
            )
            yield version, signed(version, came, left)

    def _put(self, output: Output, what: str, rows: Result) -> Written:
        if output.format == "table":
            name = output_place(output, what)
            rows.to_spark(self._spark()).write.mode("overwrite").saveAsTable(name)
            return Written(output, what, name, len(rows))
        place = output_place(output, what)
        left_out: Counter[str] = Counter()

        def fill(system: FileSystem, folder: str, new: str) -> None:
            if rows.distant is None:
                name = f"{folder}/part-00000.{output.format}"
                table = rows.to_terms()
                left_out.update(write_file(output.format, system, name, table, what))
                return
            from evermat.pipeline.spark_outputs import (  # noqa: PLC0415  needs Spark
                terms_frame,
                write_parts,
            )

            frame = terms_frame(rows)
            left_out.update(write_parts(frame, new, output.format, rows.columns, what))

        with plain_output_errors(place, "the output"):
            replace_folder(place, fill)
        warn_of_left_out(place, len(rows), left_out)
        return Written(output, what, place, len(rows) - left_out.total())

    def _put_changes(self, output: Output, predicate: str) -> Written:
        if output.format == "table":
            return self._append(output, predicate)
        place, kind = output_place(output, predicate), output.format
        with plain_output_errors(place, "the output"):
            last = last_version(place)
            for version, missed in self._missed(predicate, last):
                add_version(place, kind, version, missed, predicate)
            came, left = self._news(predicate, last)
            if came.distant is None and left.distant is None:
                table = signed(self._version, came.to_terms(), left.to_terms())
                add_version(place, kind, self._version, table, predicate)
            else:
                add_large_version(place, kind, self._version, (came, left), predicate)
        return Written(output, predicate, place, len(came) + len(left))

    def _append(self, output: Output, predicate: str) -> Written:
        """Add to a feed that is a table of Spark."""
        name, spark = output_place(output, predicate), self._spark()
        last = None
        # Without a state every run is the first one.
        mode = "overwrite" if self._kb.state is None else "append"
        if mode == "append" and spark.catalog.tableExists(name):
            (row,) = spark.table(name).selectExpr("max(version) AS last").collect()
            last = row["last"]
        for _, missed in self._missed(predicate, last):
            frame = spark.createDataFrame(for_spark(_natural(missed)))
            frame.write.mode(mode).saveAsTable(name)
        came, left = self._news(predicate, last)
        count = len(came) + len(left)
        # No rows have no types, which a table that is there might not like.
        if count or last is None:
            self._feed_frame(came, left).write.mode(mode).saveAsTable(name)
        return Written(output, predicate, name, count)

    def _news(self, predicate: str, last: int | None) -> tuple[Result, Result]:
        """What came and left; a feed begins with all there is."""
        assert self._change is not None  # noqa: S101  only feeds come here
        if last is None:
            facts = self._kb.facts(predicate)
            nothing = term_table(table_of_rows([], len(facts.columns)))
            return facts, Result(nothing, facts.columns)
        return self._change.added(predicate), self._change.removed(predicate)

    def _feed_frame(self, came: Result, left: Result) -> DataFrame:
        if came.distant is None and left.distant is None:
            table = signed(self._version, came.to_terms(), left.to_terms())
            return self._spark().createDataFrame(for_spark(_natural(table)))
        from evermat.pipeline.spark_outputs import natural_feed  # noqa: PLC0415  needs Spark

        names = feed_names(came.columns)
        return natural_feed(self._version, came, left, names, self._spark())


def _natural(table: pa.Table) -> pa.Table:
    columns = [
        natural(column) if pa.types.is_struct(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)
