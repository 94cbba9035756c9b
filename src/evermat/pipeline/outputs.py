"""Results to where they are wanted: folders of files, or tables of Spark.

A folder that is written in full is replaced as a whole once all of it is there. A
change feed has one file for each version, so that writing a version twice is harmless.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as arrow_fs

from evermat.columns import natural, table_of_rows, term_table
from evermat.io.writing import write_table
from evermat.pipeline.files import file_system
from evermat.pipeline.problems import OutputError
from evermat.rdf import write_rdf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from evermat.api import KnowledgeBase
    from evermat.change import Change
    from evermat.pipeline.config import Output
    from evermat.values import Value

_TEXT_FORMATS = {"csv", "tsv"}
ADDED, REMOVED = "+", "-"
_OURS = ("version", "sign")
_VERSION = re.compile(r"version-(\d+)")


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
            answers = self._kb.query(output.query)
            yield self._put(output, output.name, answers.to_terms())
            return
        for predicate in output.predicates:
            if output.mode == "changes":
                yield self._put(output, predicate, self._changes(predicate))
            else:
                table = self._kb.facts(predicate).to_terms()
                yield self._put(output, predicate, table)

    def _changes(self, predicate: str) -> pa.Table:
        """What came and left, with version and sign before the arguments."""
        assert self._change is not None  # noqa: S101  only feeds come here
        came = self._change.added(predicate).to_terms()
        left = self._change.removed(predicate).to_terms()
        return _signed(self._version, came, left)

    def _missed(self, predicate: str, place: str) -> Iterator[tuple[int, pa.Table]]:
        """Versions of the state that a feed does not have, though it has older ones.

        A run that ended between commit and feed leaves such a gap, and so does
        everybody else who changes the state.
        """
        last = _last_version(place)
        if last is None or self._kb.state is None or last >= self._version - 1:
            return
        from evermat.lake import changes  # noqa: PLC0415  needs a library

        found: dict[int, dict[str, list[tuple[Value, ...]]]] = {}
        until = self._version - 1
        state, options = self._kb.state, self._options
        for each in changes(state, since=last, until=until, options=options):
            if each.predicate == predicate:
                signs = found.setdefault(each.version, {ADDED: [], REMOVED: []})
                signs[each.sign].append(each.values)
        arity = self._kb.predicates[predicate]
        for version, signs in found.items():
            came, left = (
                term_table(table_of_rows(signs[sign], arity))
                for sign in (ADDED, REMOVED)
            )
            yield version, _signed(version, came, left)

    def _put(self, output: Output, what: str, table: pa.Table) -> Written:
        if output.format == "table":
            name = (output.table or "").replace("{predicate}", _word(what))
            self._to_spark_table(output, name, table)
            return Written(output, what, name, table.num_rows)
        place = (output.path or "").replace("{predicate}", _word(what))
        try:
            if output.mode == "changes":
                for version, missed in self._missed(what, place):
                    _add_version(output, place, version, missed, what)
                _add_version(output, place, self._version, table, what)
            else:
                _replace_folder(output, place, table, what)
        except OSError as error:
            raise OutputError(
                f"cannot write `{place}`: {error}",
                help="check `path` of the output, and who may write there",
            ) from error
        return Written(output, what, place, table.num_rows)

    def _to_spark_table(self, output: Output, name: str, table: pa.Table) -> None:
        frame = self._spark().createDataFrame(_natural(table))
        mode = "append" if output.mode == "changes" else "overwrite"
        frame.write.mode(mode).saveAsTable(name)


def _signed(version: int, came: pa.Table, left: pa.Table) -> pa.Table:
    parts = []
    for sign, table in ((ADDED, came), (REMOVED, left)):
        count = table.num_rows
        columns = [
            pa.repeat(pa.scalar(version, pa.int64()), count),
            pa.repeat(pa.scalar(sign), count),
            *table.columns,
        ]
        # Arguments may be called version or sign themselves.
        names = [f"{n}_" if n in _OURS else n for n in came.column_names]
        parts.append(pa.table(columns, names=[*_OURS, *names]))
    return pa.concat_tables(parts)


def _last_version(place: str) -> int | None:
    """The newest version in a feed."""
    system, path = file_system(place)
    selector = arrow_fs.FileSelector(path, allow_not_found=True)
    names = [info.base_name for info in system.get_file_info(selector)]
    versions = [int(found[1]) for name in names if (found := _VERSION.match(name))]
    return max(versions, default=None)


def _natural(table: pa.Table) -> pa.Table:
    columns = [
        natural(column) if pa.types.is_struct(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _word(name: str) -> str:
    """A predicate, which may be an IRI, as a name of a folder or table."""
    return re.sub(r"[^\w.\-]+", "_", name).strip("_") or "facts"


def _replace_folder(output: Output, place: str, table: pa.Table, what: str) -> None:
    system, path = file_system(place)
    path = path.rstrip("/")
    new, old = f"{path}.new", f"{path}.old"
    for each in (new, old):
        _remove(system, each)
    system.create_dir(new, recursive=True)
    _write_file(output, system, f"{new}/part-00000.{output.format}", table, what)
    if _kind(system, path) is not arrow_fs.FileType.NotFound:
        system.move(path, old)
    system.move(new, path)
    _remove(system, old)


def _add_version(
    output: Output, place: str, version: int, table: pa.Table, what: str
) -> None:
    system, path = file_system(place)
    system.create_dir(path, recursive=True)
    name = f"{path}/version-{version:012}"
    if output.format != "nt":
        _write_file(output, system, f"{name}.{output.format}", table, what)
        return
    # N-Triples have no room for a sign.
    signs = table.column("sign")
    facts = table.drop_columns(["version", "sign"])
    for sign, word in ((ADDED, "added"), (REMOVED, "removed")):
        rows = facts.filter(pc.equal(signs, sign))
        _write_file(output, system, f"{name}-{word}.nt", rows, what)


def _kind(system: arrow_fs.FileSystem, path: str) -> arrow_fs.FileType:
    (info,) = system.get_file_info([path])
    return info.type


def _remove(system: arrow_fs.FileSystem, path: str) -> None:
    kind = _kind(system, path)
    if kind is arrow_fs.FileType.Directory:
        system.delete_dir(path)
    elif kind is arrow_fs.FileType.File:
        system.delete_file(path)


def _write_file(
    output: Output, system: arrow_fs.FileSystem, path: str, table: pa.Table, what: str
) -> None:
    """Write a file here, and bring it to where it belongs."""
    with tempfile.TemporaryDirectory(prefix="evermat-output-") as folder:
        local = Path(folder) / Path(path).name
        if output.format == "nt":
            write_rdf(table, local, predicate=what)
        else:
            write_table(table, local, header=output.format in _TEXT_FORMATS)
        with system.open_output_stream(path) as sink, local.open("rb") as source:
            while block := source.read(1 << 22):
                sink.write(block)
