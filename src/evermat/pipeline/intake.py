"""Reads sources into facts, piece by piece, on either engine."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol
from xml.parsers.expat import ExpatError

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as arrow_fs
import pyarrow.parquet as arrow_parquet
import pyoxigraph

from evermat.columns import ColumnNamesError, declared_places, quoted_names
from evermat.columns.terms import single
from evermat.errors import EvermatError, gist
from evermat.errors.redaction import without_secrets
from evermat.io.databases import read_database, with_password
from evermat.io.expansion import require_moderate_pages, require_moderate_parquet
from evermat.pipeline.config import (
    LINE_FORMATS,
    RDF_FORMATS,
    Argument,
    Column,
    advice_for,
)
from evermat.pipeline.errors import (
    SchemaMismatchError,
    SourceError,
    plain_output_errors,
)
from evermat.pipeline.files import (
    File,
    Split,
    contents,
    file_system,
    find_files,
    lines_of,
    splits_of,
)
from evermat.pipeline.mapping import (
    NOTHING,
    REJECTED,
    TAKES,
    Mapped,
    Mapper,
    Rows,
    family,
    holes,
)
from evermat.pipeline.records import (
    csv_names,
    csv_rows,
    json_rows,
    not_unicode,
    other_columns,
    rejected_lines,
)
from evermat.rdf.lines import (
    NO_TRIPLE_TERMS,
    Labelled,
    LineError,
    Numbered,
    columns_of_lines,
    line_arrays,
)
from evermat.rdf.reading import FORMATS, QUADS_AT_ONCE, RdfSyntaxError
from evermat.rdf.untrusted_input import (
    is_deep,
    plain_xml,
    require_safe_xml,
    require_shallow_triples,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.pipeline.config import FactMap, Source
    from evermat.pipeline.files import Lines
    from evermat.rdf.lines import Renaming


# ----------------------------------------------------------------------------- triples

NAMES = ("a0", "a1", "a2")
_TRIALS = 8
"""Number of invalid lines that are removed one by one; with more, each line is tried.
"""


def mapped_lines(source: Source, split: Split) -> Iterator[Mapped]:
    """Yield the triples of lines of N-Triples or N-Quads, without graph names."""
    renaming = Labelled(_scope(split.file))
    for lines in lines_of(split):
        rejected = not_unicode(lines)
        columns, wrong = _parsed(source.format, lines)
        rejected += wrong
        yield Mapped(
            [(source.facts[0].predicate, _table(columns, renaming))],
            rejected_lines(source.name, lines.file, rejected),
            len(lines.texts) + len(lines.broken),
        )


def _scope(file: File) -> str:
    return "f" + hashlib.blake2s(file.name.encode(), digest_size=5).hexdigest()


def _table(columns: list[pa.Array], renaming: Renaming) -> pa.Table:
    return pa.table([renaming.rename(column) for column in columns], names=NAMES)


def _parsed(
    syntax: str, lines: Lines
) -> tuple[list[pa.Array], list[tuple[int, str, str]]]:
    """Return the terms of lines, and the invalid lines."""
    wrong: list[tuple[int, str, str]] = []
    while True:
        try:
            return _columns(syntax, lines.texts), wrong
        except LineError as error:
            if error.line is None or len(wrong) == _TRIALS:
                return _one_by_one(syntax, lines, wrong)
            at = error.line - 1
            reason = _reason(error.problem)
            wrong.append((lines.positions[at].as_py(), lines.texts[at].as_py(), reason))
            keep = pc.not_equal(pa.array(range(len(lines.texts)), pa.int64()), at)
            lines = lines.where(keep)


def _columns(syntax: str, texts: pa.Array) -> list[pa.Array]:
    """Return the terms of lines.

    Raises:
        LineError: a line is invalid; its number counts from the first one.
    """
    return columns_of_lines(_without_graphs(texts) if syntax == "nq" else texts, 1)


def _without_graphs(texts: pa.Array) -> pa.Array:
    """Convert quads to triples; invalid lines are unchanged, and rejected later."""
    has_graph = pc.match_substring_regex(texts, r"(<[^>]*>|_:\S+)\s*\.\s*$")
    rows = pc.indices_nonzero(pc.fill_null(has_graph, fill_value=False))
    if not len(rows):
        return texts
    replaced = texts.to_pylist()
    for row in rows.to_pylist():
        replaced[row] = _triple_line(replaced[row])
    return pa.array(replaced, pa.string())


def _triple_line(line: str) -> str:
    if is_deep(line):
        return line
    try:
        quads = list(pyoxigraph.parse(line, FORMATS["nq"]))
    except SyntaxError:
        return line
    data = pyoxigraph.serialize((quad.triple for quad in quads), format=FORMATS["nt"])
    return (data or b"").decode().rstrip("\n")


def _one_by_one(
    syntax: str, lines: Lines, wrong: list[tuple[int, str, str]]
) -> tuple[list[pa.Array], list[tuple[int, str, str]]]:
    """Parse lines one by one, if many are invalid, or the invalid one is not known."""
    right = []
    for position, line in zip(
        lines.positions.to_pylist(), lines.texts.to_pylist(), strict=True
    ):
        reason = _what_is_wrong(syntax, line)
        if reason is not None:
            wrong.append((position, line, reason))
        right.append(reason is None)
    kept = lines.texts.filter(pa.array(right, pa.bool_()))
    return _columns(syntax, kept), wrong


def _what_is_wrong(syntax: str, line: str) -> str | None:
    """Return why a line is no triple or quad, or None."""
    if is_deep(line):
        return NO_TRIPLE_TERMS
    try:
        for quad in pyoxigraph.parse(line, FORMATS[syntax]):
            if isinstance(quad.object, pyoxigraph.Triple):
                return NO_TRIPLE_TERMS
    except SyntaxError as error:
        return _reason(error)
    return None


def _reason(problem: SyntaxError | str) -> str:
    message = problem if isinstance(problem, str) else problem.msg
    message = re.sub(r"^Parser error at .*?\d: ", "", message)
    return message[:1].lower() + message[1:]


def mapped_file(source: Source, file: File) -> Iterator[Mapped]:
    """Yield the triples of a file of Turtle, TriG or RDF/XML, which is valid or not.

    Raises:
        RdfSyntaxError: with the file, and the line if the parser reports it.
    """
    renaming = Numbered(_scope(file))
    predicate = source.facts[0].predicate
    nothing = rejected_lines(source.name, file.name, [])
    text = _safe(contents(file), source.format, file.name)
    try:
        quads = iter(
            pyoxigraph.parse(text, FORMATS[source.format], base_iri=source.base)
        )
        while batch := _some(quads):
            lines = pyoxigraph.serialize(batch, format=FORMATS["nt"]) or b""
            for _, texts in line_arrays(pa.BufferReader(lines)):
                table = _table(columns_of_lines(texts, None), renaming)
                yield Mapped([(predicate, table)], nothing, table.num_rows)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise RdfSyntaxError(f"`{file.name}`{where}: {_reason(error)}") from None
    except LineError as error:
        raise RdfSyntaxError(f"`{file.name}`: {_reason(error.problem)}") from None


def _safe(data: bytes, syntax: str, name: str) -> bytes:
    """Return the contents of a file, after checks that protect the parser."""
    if syntax != "rdf":
        require_shallow_triples(name, data.decode(errors="replace"))
        return data
    data = plain_xml(data)
    try:
        require_safe_xml(name, data)
    except ExpatError as error:
        raise RdfSyntaxError(f"`{name}`: {error}") from None
    return data


def _some(quads: Iterator[pyoxigraph.Quad]) -> list[pyoxigraph.Triple]:
    found = []
    for quad in quads:
        found.append(quad.triple)
        if len(found) == QUADS_AT_ONCE:
            break
    return found


# ------------------------------------------------------------------------------ intake

_ROWS_AT_ONCE = 1 << 16
_PAGE = 1 << 20


@dataclass(frozen=True, slots=True)
class Taken:
    """The contents read from a source.

    Attributes:
        rows: the number of rows read, valid or not.
        facts: by predicate, in the form for the engine: a table or a frame.
        counts: the number of facts of each predicate, including duplicates.
        rejected: the number of rejected rows.
        sample: some of the rejected rows, to show.
        columns: the names of the columns that were read.
    """

    source: Source
    rows: int
    facts: Mapping[str, object]
    counts: Mapping[str, int]
    rejected: int
    sample: pa.Table
    columns: tuple[str, ...] = ()


class Intake(Protocol):
    """Reads sources on an engine."""

    def take(self, source: Source, paths: Sequence[str], rejected: str) -> Taken:
        """Read a source.

        Args:
            source: the source.
            paths: its paths, or those of an update.
            rejected: the place for rejected rows.
        """

    def release(self) -> None:
        """Release the facts that were read."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How files are read: their splits and columns."""

    source: Source
    splits: tuple[Split, ...]
    names: tuple[str, ...] = ()


def plan_files(source: Source, paths: Sequence[str]) -> Plan:
    """Find the files of a source, and determine their columns.

    Raises:
        SourceError: no file exists, or it cannot be reached.
        SchemaMismatchError: columns are missing or of another type.
    """
    files = find_files(paths, source.folder)
    names: Sequence[str] = ()
    if source.format in {"csv", "tsv"}:
        names = csv_names(source, files)
        _require_different(source, names, files[0])
        check_columns(source, dict.fromkeys(names, "string"))
    elif source.format == "parquet":
        names = _parquet_names(source, files)
    can_split = source.format in {*LINE_FORMATS, "parquet"} and not source.multiline
    splits = tuple(splits_of(files, whole=not can_split))
    return Plan(by_name(source, names), splits, tuple(names))


def by_name(source: Source, names: Sequence[str]) -> Source:
    """Return the source with arguments for facts whose columns are matched by name.

    Args:
        source: the source.
        names: the columns that are read, if the source does not declare them.

    Raises:
        SchemaMismatchError: the columns have other names than the declared ones.
    """
    found = [column.name for column in source.columns] or names
    if not found:
        return source
    facts = tuple(_by_name(source, each, found) for each in source.facts)
    return replace(source, facts=facts)


def _by_name(source: Source, facts: FactMap, found: Sequence[str]) -> FactMap:
    if facts.arguments or not facts.declared:
        return facts
    try:
        places = declared_places(found, facts.declared)
    except ColumnNamesError as error:
        raise SchemaMismatchError(
            f"source `{source.name}` has the columns {quoted_names(found)}, and those "
            f"declared for `{facts.predicate}` are {quoted_names(facts.declared)}",
            reason="columns go to declared columns by name",
            help="write `arguments` of the source: its columns, in the order of the "
            "declaration",
        ) from without_secrets(error)
    arguments = tuple(Argument("column", found[at]) for at in places)
    return replace(facts, arguments=arguments)


def _parquet_names(source: Source, files: Sequence[File]) -> list[str]:
    """Return the columns to read: those of the configuration, or all of them."""
    names: list[str] = []
    seen: dict[str, tuple[str, File]] = {}
    for file in files:
        parquet = opened_parquet(file)
        _require_moderate(file, parquet)
        schema = parquet.schema_arrow
        _require_different(source, schema.names, file)
        families = {field.name: family(field.type) for field in schema}
        check_columns(source, families, where=f" in `{file.name}`")
        _require_same_types(source, families, file, seen)
        names = names or list(schema.names)
        if not source.columns and set(schema.names) != set(names):
            raise other_columns(file, schema.names, files[0], names)
    return [column.name for column in source.columns] or names


def _require_same_types(
    source: Source,
    families: Mapping[str, str],
    file: File,
    seen: dict[str, tuple[str, File]],
) -> None:
    """Check that columns without a declared type have one type in all files.

    Otherwise `1` of one file and `"1"` of another would never be the same constant.
    """
    declared = {column.name for column in source.columns if column.type is not None}
    used = {column.name for column in source.columns} or families.keys()
    for name, found in families.items():
        if name in declared or name not in used or found == NOTHING:
            continue
        known, first = seen.setdefault(name, (found, file))
        if known != found:
            raise SchemaMismatchError(
                f"column `{name}` of source `{source.name}` holds `{known}` in "
                f"`{first.name}`, and `{found}` in `{file.name}`",
                reason="constants of different types are different, and never join",
                help=f'declare what it is to hold: [source.columns] {name} = "{known}"',
            )


def _require_different(source: Source, names: Sequence[str], file: File) -> None:
    """Check that every column that is read occurs once."""
    wanted = needed_columns(source) if source.columns else names
    twice = [name for name in dict.fromkeys(wanted) if names.count(name) > 1]
    if twice:
        raise SchemaMismatchError(
            f"`{file.name}` has several columns called "
            + ", ".join(f"`{name}`" for name in twice),
            help="give them different names, or name other `columns` to read",
        )


def _require_moderate(file: File, parquet: arrow_parquet.ParquetFile) -> None:
    try:
        system, path = file_system(file.uri)
        # In object stores, each header would take a request.
        if isinstance(system, arrow_fs.LocalFileSystem):
            with system.open_input_file(path) as opened:
                require_moderate_pages(
                    lambda at, size: opened.read_at(size, at),
                    file.name,
                    file.size,
                )
        require_moderate_parquet(
            partial(opened_parquet, file), parquet, file.name, file.size
        )
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, EvermatError):
            raise
        raise damaged(file, error) from without_secrets(error)


def opened_parquet(
    file: File, dictionaries: Sequence[str] = ()
) -> arrow_parquet.ParquetFile:
    """Open a Parquet file and read its footer.

    Args:
        file: the file.
        dictionaries: columns of strings that are read as dictionaries.

    Raises:
        SourceError: it cannot be read.
    """
    system, path = file_system(file.uri)
    try:
        return arrow_parquet.ParquetFile(
            system.open_input_file(path),
            read_dictionary=list(dictionaries),
            # Of columns that are only inspected, the first pages are enough.
            buffer_size=_PAGE if dictionaries else 0,
        )
    except (OSError, pa.ArrowException, ValueError) as error:
        raise damaged(file, error) from without_secrets(error)


def damaged(file: File, error: Exception) -> SourceError:
    """Return the error for a Parquet file that cannot be read."""
    reason = gist(str(error))
    return SourceError(
        f"`{file.name}` cannot be read as Parquet: {reason}",
        help="the file is damaged or incomplete; write it again, or leave it out",
    )


def check_columns(source: Source, found: Mapping[str, str], where: str = "") -> None:
    """Check that the required columns exist, with supported types.

    Args:
        source: the source.
        found: the families of the existing columns.
        where: the file, for messages.

    Raises:
        SchemaMismatchError: with all mismatches.
    """
    wrong = [
        f"there is no column `{name}`; {advice_for(name, list(found))}"
        for name in needed_columns(source)
        if found and name not in found
    ]
    if not found and needed_columns(source):
        wrong.append("there are no columns")
    for column in source.columns or [Column(name) for name in found]:
        has = found.get(column.name, NOTHING)
        takes = TAKES[column.type or "string"]
        if has != NOTHING and has not in takes:
            wanted = f"`{column.type}` is wanted" if column.type else "no type fits"
            wrong.append(f"column `{column.name}` holds `{has}` where {wanted}")
    if wrong:
        raise SchemaMismatchError(
            f"source `{source.name}`{where} does not match: {'; '.join(wrong)}",
            help="correct `columns` of the source, or the data",
        )


def needed_columns(source: Source) -> list[str]:
    """Return the columns that the configuration mentions."""
    names = [column.name for column in source.columns]
    for each in source.facts:
        for argument in each.arguments:
            if argument.kind == "column":
                names.append(argument.text)
            elif argument.kind in {"iri", "text"}:
                names += holes(argument.text)
    return list(dict.fromkeys(names))


def mapped(plan: Plan, split: Split) -> Iterator[Mapped]:
    """Read a piece of a file and map its rows; Spark does this in its tasks."""
    source = plan.source
    if source.format in {"nt", "nq"}:
        yield from mapped_lines(source, split)
        return
    if source.format in RDF_FORMATS:
        yield from mapped_file(source, split.file)
        return
    mapper = Mapper(source, plan.names)
    for found in _rows(plan, split):
        if isinstance(found, Rows):
            yield mapper.map(found)
        else:
            yield Mapped([], found, found.num_rows)


def _rows(plan: Plan, split: Split) -> Iterator[Rows | pa.Table]:
    match plan.source.format:
        case "csv" | "tsv":
            return csv_rows(plan.source, split, plan.names)
        case "json":
            return json_rows(plan.source, split)
        case _:
            return _parquet_rows(split, plan.names)


def _parquet_rows(split: Split, names: Sequence[str]) -> Iterator[Rows]:
    file = split.file
    try:
        parquet = opened_parquet(file)
        for group, start in _row_groups(parquet.metadata, split):
            at = start
            for batch in parquet.iter_batches(
                batch_size=_ROWS_AT_ONCE, row_groups=[group], columns=list(names)
            ):
                batch.validate(full=True)  # indices of dictionaries may be damaged
                positions = pa.array(range(at, at + batch.num_rows), pa.int64())
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield Rows(columns, batch.num_rows, file.name, positions)
                at += batch.num_rows
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, EvermatError):
            raise
        raise damaged(file, error) from without_secrets(error)


def _row_groups(
    metadata: arrow_parquet.FileMetaData, split: Split
) -> Iterator[tuple[int, int]]:
    """Yield the row groups of a split, each with the number of its first row.

    Row groups are assumed to be of one size: only the metadata of their columns contain
    their offsets, and pyarrow aborts the process if these are damaged.
    """
    row = 0
    for number in range(metadata.num_row_groups):
        begin = split.file.size * number // metadata.num_row_groups
        if split.start <= begin and (split.end is None or begin < split.end):
            yield number, row
        row += metadata.row_group(number).num_rows


class LocalIntake:
    """Reads sources in this process, into Arrow tables."""

    def take(self, source: Source, paths: Sequence[str], rejected: str) -> Taken:
        """Read a source; see `Intake`."""
        facts: dict[str, list[pa.Table]] = {}
        wrong: list[pa.Table] = []
        rows = 0
        names, pieces = _pieces(source, paths)
        for piece in pieces:
            rows += piece.rows
            for predicate, table in piece.facts:
                facts.setdefault(predicate, []).append(table)
            if piece.rejected.num_rows:
                wrong.append(piece.rejected)
        aside = pa.concat_tables([REJECTED.empty_table(), *wrong])
        if aside.num_rows:
            write_rejected(aside, rejected)
        tables = {name: pa.concat_tables(parts) for name, parts in facts.items()}
        return Taken(
            source=source,
            rows=rows,
            facts=tables,
            counts={name: table.num_rows for name, table in tables.items()},
            rejected=aside.num_rows,
            sample=aside.slice(0, SAMPLE),
            columns=names,
        )

    def release(self) -> None:
        """Do nothing: there is nothing to release."""


def _pieces(
    source: Source, paths: Sequence[str]
) -> tuple[tuple[str, ...], Iterable[Mapped]]:
    """Return the columns that are read, and the mapped rows of a source, in pieces."""
    if source.format == "database":
        return _from_database(source)
    plan = plan_files(source, paths)
    pieces = (piece for split in plan.splits for piece in mapped(plan, split))
    return plan.names, pieces


def _from_database(source: Source) -> tuple[tuple[str, ...], Iterable[Mapped]]:
    database = source.database
    assert database is not None  # noqa: S101  the configuration was checked
    assert database.url is not None  # noqa: S101  the same
    address = database.url
    if database.password_variable is not None:
        address = with_password(address, database.password_variable)
    table = read_database(address, database.table or "", query=database.query)
    check_columns(source, {each.name: family(each.type) for each in table.schema})
    names = tuple(column.name for column in source.columns) or tuple(table.column_names)
    columns = {name: single(table.column(name)) for name in names}
    mapper = Mapper(by_name(source, names), names)
    return names, (mapper.map(Rows(columns, table.num_rows)),)


SAMPLE = 20
"""Number of rejected rows in a report."""


def write_rejected(table: pa.Table, place: str) -> None:
    """Write rejected rows of a source to a Parquet file."""
    write_table_to(table, place, "[rejected]")


def write_table_to(table: pa.Table, place: str, entry: str) -> None:
    """Write a Parquet file, and create its folders."""
    with plain_output_errors(place, entry):
        system, path = file_system(place)
        system.create_dir(path.rpartition("/")[0], recursive=True)
        with system.open_output_stream(path) as sink:
            arrow_parquet.write_table(table, sink)
