"""Writes results to their places: folders of files, or tables.

A folder that is written in full is replaced as a whole once its contents are complete.
A change feed has one file for each version, so writing a version twice is harmless.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as arrow_fs

from evermat.columns import for_spark, natural, table_of_rows, term_table
from evermat.io.databases import with_password, write_database
from evermat.io.ntriples import warn_of_left_out
from evermat.lang.catalogue import UnknownPredicateError
from evermat.lang.parser import parse_query
from evermat.lang.syntax import body_atoms
from evermat.pipeline.config import output_place
from evermat.pipeline.errors import plain_output_errors, require_feed_of
from evermat.pipeline.files import file_system, remove, replace_folder, write_file
from evermat.pipeline.program import version_of
from evermat.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    from evermat.api import KnowledgeBase
    from evermat.pipeline.config import Config, Output
    from evermat.pipeline.program import PipelineProgram
    from evermat.results.change import Change
    from evermat.values import Value


# ------------------------------------------------------------------------------- feeds

# Change feeds: for each version the added and removed facts, with a sign.
#
# A version is one file, or, if it has many facts, several: those besides the first are
# named `version-…-part-…`. The first is written last, so that a version whose first
# file exists is complete.

ADDED, REMOVED = "+", "-"
_WORDS = ((ADDED, "added"), (REMOVED, "removed"))
_OURS = ("version", "sign")
# The second of the two files of a version in N-Triples makes it complete.
_VERSION = re.compile(r"version-(\d+)(?:-removed)?\.")


def feed_names(columns: Sequence[str]) -> list[str]:
    """Return the columns of a feed, where arguments have no reserved names."""
    return [*_OURS, *(f"{name}_" if name in _OURS else name for name in columns)]


def last_version(place: str) -> int | None:
    """Return the newest version in a feed."""
    names = [info.base_name for info in _listed(place)]
    versions = [int(found[1]) for name in names if (found := _VERSION.match(name))]
    return max(versions, default=None)


def _listed(place: str) -> list[arrow_fs.FileInfo]:
    system, path = file_system(place)
    selector = arrow_fs.FileSelector(path, allow_not_found=True)
    found: list[arrow_fs.FileInfo] = system.get_file_info(selector)
    return found


def signed(version: int, added: pa.Table, removed: pa.Table) -> pa.Table:
    """Return added and removed facts, with version and sign before the arguments."""
    parts = []
    for sign, table in ((ADDED, added), (REMOVED, removed)):
        count = table.num_rows
        columns = [
            pa.repeat(pa.scalar(version, pa.int64()), count),
            pa.repeat(pa.scalar(sign), count),
            *table.columns,
        ]
        parts.append(pa.table(columns, names=feed_names(added.column_names)))
    return pa.concat_tables(parts)


def add_version(
    place: str, suffix: str, version: int, table: pa.Table, what: str
) -> None:
    """Add the result of `signed` to a feed, or replace it there."""
    system, path = file_system(place)
    system.create_dir(path, recursive=True)
    name = f"{path}/{_version_name(version)}"
    if suffix != "nt":
        write_file(suffix, system, f"{name}.{suffix}", table, what)
        return
    # N-Triples have no place for a sign.
    signs = table.column("sign")
    facts = table.drop_columns(["version", "sign"])
    for sign, word in _WORDS:
        rows = facts.filter(pc.equal(signs, sign))
        left_out = write_file("nt", system, f"{name}-{word}.nt", rows, what)
        warn_of_left_out(f"{name}-{word}.nt", rows.num_rows, left_out)


def add_large_version(
    place: str, suffix: str, version: int, changes: tuple[Result, Result], what: str
) -> None:
    """Do the same for distributed changes, which tasks write."""
    from evermat.pipeline.spark_io import (  # noqa: PLC0415  needs Spark
        signed_frame,
        terms_frame,
        write_parts,
    )

    added, removed = changes
    name = _version_name(version)
    if suffix != "nt":
        frame = signed_frame(version, added, removed)
        with _Folder(place, name, suffix) as folder:
            write_parts(frame, folder, suffix, feed_names(added.columns), what)
        return
    like = terms_frame(added if added.distant is not None else removed)
    for (_, word), result in zip(_WORDS, changes, strict=True):
        frame = terms_frame(result, like)
        with _Folder(place, f"{name}-{word}", suffix) as folder:
            left_out = write_parts(frame, folder, suffix, result.columns, what)
            warn_of_left_out(folder, len(result), left_out)


def _version_name(version: int) -> str:
    return f"version-{version:012}"


class _Folder:
    """A folder for parts of a version, which then become files of the feed."""

    def __init__(self, place: str, name: str, suffix: str) -> None:
        self._place, self._name, self._suffix = place.rstrip("/"), name, suffix
        self._system, self._path = file_system(self._place)
        self._path = self._path.rstrip("/")

    def __enter__(self) -> str:
        # Hidden from readers until it is complete.
        remove(self._system, f"{self._path}/.{self._name}")
        self._system.create_dir(f"{self._path}/.{self._name}", recursive=True)
        return f"{self._place}/.{self._name}"

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        system, hidden = self._system, f"{self._path}/.{self._name}"
        if kind is None:
            for info in _listed(self._place):
                if info.base_name.startswith(f"{self._name}-part-"):
                    system.delete_file(info.path)
            selector = arrow_fs.FileSelector(hidden)
            parts = sorted(info.path for info in system.get_file_info(selector))
            if not parts:
                # No task had a row: only N-Triples have a file without rows.
                new = f"{self._path}/{self._name}.{self._suffix}"
                system.open_output_stream(new).close()
            for number in range(len(parts) - 1, -1, -1):
                more = f"-part-{number:05}" if number else ""
                new = f"{self._path}/{self._name}{more}.{self._suffix}"
                system.move(parts[number], new)
        remove(system, hidden)


# ------------------------------------------------------------------------------ checks


def check_outputs(
    config: Config, program: PipelineProgram, kb: KnowledgeBase | None
) -> None:
    """Check that outputs and expectations refer to known predicates.

    Raises:
        ParseError: a query is invalid.
        UnknownPredicateError: an output names an unknown predicate.
    """
    known = set(_known(config, program))
    if kb is not None:
        known.update(kb.predicates)
    prefixes = dict(program.program.prefixes)
    for output in config.outputs:
        for name in output.predicates:
            if name not in known:
                raise UnknownPredicateError(name, known)
    queries = [output.query for output in config.outputs if output.query is not None]
    for query in [*queries, *(each.query for each in config.expectations)]:
        for atom in body_atoms(parse_query(query, prefixes=prefixes)):
            if atom.predicate not in known:
                span = atom.predicate_span or atom.span
                raise UnknownPredicateError(atom.predicate, known, span=span)


def check_feeds(config: Config, kb: KnowledgeBase | None) -> None:
    """Check that change feeds belong to the state, if there is one.

    Raises:
        OutputError: a feed belongs to another state, or cannot be read.
    """
    if config.state is None:
        return
    version = 0 if kb is None else version_of(kb)
    for output in config.outputs:
        if output.mode != "changes" or output.format == "table":
            continue
        for name in output.predicates:
            place = output_place(output, name)
            with plain_output_errors(place, "the output"):
                last = last_version(place)
            require_feed_of(version, last or 0, place)


def _known(config: Config, program: PipelineProgram) -> Iterator[str]:
    for source in config.sources:
        yield from source.predicates
    yield from program.facts
    for declaration in program.program.declarations:
        yield declaration.predicate
    for rule in program.program.rules:
        for atom in (*rule.heads, *body_atoms(rule.body)):
            yield atom.predicate


# ----------------------------------------------------------------------------- outputs


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
        """Create a publisher.

        Args:
            kb: the knowledge base.
            change: the change of this version; None if no output needs it.
            version: the number of the version.
            spark: returns a session, for outputs that are tables of Spark.
            options: storage options of the state, as in `deltalake`.
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
        """Yield versions of the state that a feed lacks, though it has older ones.

        A run that ended between commit and feed leaves such a gap, and so do other
        programs that change the state.
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
            added, removed = (
                term_table(table_of_rows(signs[sign], arity))
                for sign in (ADDED, REMOVED)
            )
            yield version, signed(version, added, removed)

    def _put(self, output: Output, what: str, rows: Result) -> Written:
        if output.format == "table":
            name = output_place(output, what)
            rows.to_spark(self._spark()).write.mode("overwrite").saveAsTable(name)
            return Written(output, what, name, len(rows))
        if output.format == "database":
            address = output.url or ""
            if output.password_variable is not None:
                address = with_password(address, output.password_variable)
            name = output_place(output, what)
            write_database(address, name, rows.to_arrow())
            return Written(output, what, name, len(rows))
        place = output_place(output, what)
        left_out: Counter[str] = Counter()

        def fill(system: FileSystem, folder: str, new: str) -> None:
            if rows.distant is None:
                name = f"{folder}/part-00000.{output.format}"
                table = rows.to_terms()
                left_out.update(write_file(output.format, system, name, table, what))
                return
            from evermat.pipeline.spark_io import (  # noqa: PLC0415  needs Spark
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
            added, removed = self._news(predicate, last)
            if added.distant is None and removed.distant is None:
                table = signed(self._version, added.to_terms(), removed.to_terms())
                add_version(place, kind, self._version, table, predicate)
            else:
                add_large_version(
                    place, kind, self._version, (added, removed), predicate
                )
        return Written(output, predicate, place, len(added) + len(removed))

    def _append(self, output: Output, predicate: str) -> Written:
        """Append to a feed that is a table of Spark."""
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
        added, removed = self._news(predicate, last)
        count = len(added) + len(removed)
        # A frame without rows has no types, and might not fit the existing table.
        if count or last is None:
            self._feed_frame(added, removed).write.mode(mode).saveAsTable(name)
        return Written(output, predicate, name, count)

    def _news(self, predicate: str, last: int | None) -> tuple[Result, Result]:
        """Return added and removed facts; a new feed begins with all facts."""
        assert self._change is not None  # noqa: S101  only feeds come here
        if last is None:
            facts = self._kb.facts(predicate)
            nothing = term_table(table_of_rows([], len(facts.columns)))
            return facts, Result(nothing, facts.columns)
        return self._change.added(predicate), self._change.removed(predicate)

    def _feed_frame(self, added: Result, removed: Result) -> DataFrame:
        if added.distant is None and removed.distant is None:
            table = signed(self._version, added.to_terms(), removed.to_terms())
            return self._spark().createDataFrame(for_spark(_natural(table)))
        from evermat.pipeline.spark_io import natural_feed  # noqa: PLC0415  needs Spark

        names = feed_names(added.columns)
        return natural_feed(self._version, added, removed, names, self._spark())


def _natural(table: pa.Table) -> pa.Table:
    columns = [
        natural(column) if pa.types.is_struct(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)
