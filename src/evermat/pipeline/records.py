"""Parses lines of CSV and JSON to rows; invalid lines are set aside."""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from evermat.columns import order_of, warn
from evermat.io.headers import HeaderWarning
from evermat.pipeline.errors import SchemaMismatchError, SourceError
from evermat.pipeline.files import Lines, contents, first_line, lines_of, read_json
from evermat.pipeline.mapping import REJECTED, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.pipeline.config import Source
    from evermat.pipeline.files import File, Split

_ROWS_AT_ONCE = 1 << 16


def rejected_lines(
    source: str, file: str, lines: Sequence[tuple[int | None, str, str]]
) -> pa.Table:
    """Return rejected lines, each with its position, its text and the reason."""
    positions, texts, reasons = zip(*lines, strict=True) if lines else ((), (), ())
    count = len(lines)
    return pa.table(
        [
            pa.array([source] * count, pa.string()),
            pa.array([file] * count, pa.string()),
            pa.array(positions, pa.int64()),
            pa.nulls(count, pa.string()),
            pa.array(reasons, pa.string()),
            pa.array(texts, pa.string()),
        ],
        schema=REJECTED,
    )


def not_unicode(lines: Lines) -> list[tuple[int, str, str]]:
    """Return the lines that are not UTF-8, to be rejected."""
    found = []
    for position, line in lines.broken:
        shown = line.decode("utf-8", "backslashreplace")
        try:
            line.decode()
        except UnicodeDecodeError as error:
            byte = f"0x{line[error.start]:02x}"
            reason = f"not UTF-8: byte {byte} at position {position + error.start}"
            found.append((position, shown, reason))
    return found


# ------------------------------------------------------------------------------ CSV


def csv_names(source: Source, files: Sequence[File]) -> list[str]:
    """Return the names of the columns, which must be the same in all files.

    Raises:
        SchemaMismatchError: a file has other columns than the first one.

    Warns:
        HeaderWarning: there seems to be a header, contrary to the configuration.
    """
    if not source.header:
        declared = [column.name for column in source.columns]
        with suppress(SourceError):  # a line that cannot be read is rejected later
            first = _header(source, files[0])
            if order_of(first, declared) is not None:
                advice = "if it holds names, leave out `header = false` of the source"
                warn(HeaderWarning(files[0].name, first, help=advice))
        return declared
    names = _header(source, files[0])
    for file in files[1:]:
        others = _header(source, file)
        if others != names:
            raise other_columns(file, others, files[0], names)
    return names


def other_columns(
    file: File, others: Sequence[str], first: File, names: Sequence[str]
) -> SchemaMismatchError:
    """Return the error for a file that has other columns than the first one."""
    return SchemaMismatchError(
        f"the columns of `{file.name}` are {_listed(others)}, and those of "
        f"`{first.name}` are {_listed(names)}",
        reason="the files of a source have the same columns, those of CSV in the same "
        "order",
        help="name the columns to read in `columns`, or correct the files",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _header(source: Source, file: File) -> list[str]:
    line = first_line(file)
    try:
        return next(csv.reader([line], delimiter=source.delimiter), [])
    except csv.Error as error:
        raise SourceError(
            f"the first line of `{file.name}` does not name columns: {error}",
            help="correct it, or say `header = false`",
        ) from error


def csv_rows(
    source: Source, split: Split, names: Sequence[str]
) -> Iterator[Rows | pa.Table]:
    """Yield the rows of a piece of a CSV file, and tables of rejected lines."""
    if source.multiline:
        yield from _whole_file(source, split.file, names)
        return
    has_header = source.header and split.start == 0
    for lines in lines_of(split):
        rest = lines
        if has_header:
            rest = lines.where(pc.not_equal(lines.positions, 0))
            has_header = False
        is_cut = pc.match_substring(rest.texts, "\r")
        cut = rest.where(is_cut)
        pairs = zip(cut.positions.to_pylist(), cut.texts.to_pylist(), strict=True)
        wrong = [(at, text, "a line end within the line") for at, text in pairs]
        if wrong or lines.broken:
            wrong += not_unicode(lines)
            yield rejected_lines(source.name, lines.file, wrong)
        yield from _csv_lines(source, rest.where(pc.invert(is_cut)), names)


def _csv_lines(
    source: Source, lines: Lines, names: Sequence[str]
) -> Iterator[Rows | pa.Table]:
    wrong: list[tuple[int, int]] = []

    def set_aside(row: arrow_csv.InvalidRow) -> str:
        wrong.append((row.number - 1, row.actual_columns))
        return "skip"

    # A quote that is not closed extends into the next line: an additional line reveals
    # that of the last one, too.
    one_more = "x" + source.delimiter * (len(names) - 1)
    text = "\n".join([*lines.texts.to_pylist(), one_more])
    table = _parsed(source, io.BytesIO(text.encode()), names, set_aside)
    count = len(lines.texts)
    if table is None or len(wrong) + table.num_rows != count + 1:
        yield from _halves(source, lines, names)
        return
    rejected = []
    for number, found in wrong:
        reason = f"{found} columns where there should be {len(names)}"
        position, line = lines.positions[number].as_py(), lines.texts[number].as_py()
        rejected.append((position, line, reason))
    if rejected:
        yield rejected_lines(source.name, lines.file, rejected)
    bad = pa.array([number for number, _ in wrong], pa.int64())
    every = pa.array(range(count), pa.int64())
    good = lines.where(pc.invert(pc.is_in(every, value_set=bad))) if wrong else lines
    yield _rows(table.slice(0, table.num_rows - 1), good)


def _halves(
    source: Source, lines: Lines, names: Sequence[str]
) -> Iterator[Rows | pa.Table]:
    """Search for a line that does not end where it should, by halving."""
    count = len(lines.texts)
    if count == 1:
        position, line = lines.positions[0].as_py(), lines.texts[0].as_py()
        reason = "a quote that is not closed in its line"
        yield rejected_lines(source.name, lines.file, [(position, line, reason)])
        return
    middle = count // 2
    for part in (slice(None, middle), slice(middle, None)):
        half = Lines(lines.file, lines.texts[part], lines.positions[part])
        yield from _csv_lines(source, half, names)


def _rows(table: pa.Table, lines: Lines) -> Rows:
    columns = {
        name: column.combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return Rows(columns, table.num_rows, lines.file, lines.positions, lines.texts)


def _parsed(
    source: Source,
    stream: object,
    names: Sequence[str],
    handler: object = None,
) -> pa.Table | None:
    try:
        return arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=list(names), use_threads=False, block_size=1 << 28
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=source.delimiter,
                newlines_in_values=source.multiline,
                invalid_row_handler=handler,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return pa.table({name: pa.array([], pa.string()) for name in names})
        return None


def _whole_file(
    source: Source, file: File, names: Sequence[str]
) -> Iterator[Rows | pa.Table]:
    data = contents(file)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise SourceError(
            f"`{file.name}` is not in UTF-8: byte 0x{data[error.start]:02x} at "
            f"position {error.start}",
            help="convert it to UTF-8; without `multiline`, only that line is rejected",
        ) from error
    if source.header:
        data = data.partition(b"\n")[2]
    wrong: list[tuple[None, str, str]] = []

    def set_aside(row: arrow_csv.InvalidRow) -> str:
        reason = f"{row.actual_columns} columns where there should be {len(names)}"
        # The position of a row is not known: earlier rows may have several lines.
        wrong.append((None, row.text, reason))
        return "skip"

    table = _parsed(source, io.BytesIO(data), names, set_aside)
    if table is None:
        raise SourceError(
            f"`{file.name}` has a quote that is never closed", help="correct the file"
        )
    if wrong:
        yield rejected_lines(source.name, file.name, wrong)
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        part = table.slice(start, _ROWS_AT_ONCE).combine_chunks()
        columns = {
            name: column.combine_chunks()
            for name, column in zip(names, part.columns, strict=True)
        }
        yield Rows(columns, part.num_rows, file.name)


# ----------------------------------------------------------------------------- JSON


def json_rows(source: Source, split: Split) -> Iterator[Rows | pa.Table]:
    """Yield the objects in lines of JSON; only declared columns are read."""
    names = [column.name for column in source.columns]
    for lines in lines_of(split):
        rejected = not_unicode(lines)
        good: list[int] = []
        records: list[list[str | None]] = []
        pairs = zip(lines.positions.to_pylist(), lines.texts.to_pylist(), strict=True)
        for number, (position, line) in enumerate(pairs):
            record = _record(line)
            if isinstance(record, str):
                rejected.append((position, line, record))
                continue
            good.append(number)
            records.append([_json_text(record.get(name)) for name in names])
        if rejected:
            yield rejected_lines(source.name, lines.file, rejected)
        columns = zip(*records, strict=True) if records else [()] * len(names)
        numbers = pa.array(good, pa.int64())
        yield Rows(
            {
                name: pa.array(column, pa.string())
                for name, column in zip(names, columns, strict=True)
            },
            len(good),
            lines.file,
            lines.positions.take(numbers),
            lines.texts.take(numbers),
        )


def _record(line: str) -> dict[str, object] | str:
    """Return the object in a line, or the reason why there is none; keep digits."""
    try:
        found = read_json(line, _Digits)
    except ValueError as error:
        return f"not JSON: {error}"
    return found if isinstance(found, dict) else "not a JSON object"


class _Digits(str):
    """A number as it was written."""

    __slots__ = ()


def _json_text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
        case _:
            return _nested(value)


def _nested(value: object) -> str:
    """Return a list or an object as JSON; numbers as they were written."""
    match value:
        case _Digits():
            return str(value)
        case list():
            return f"[{', '.join(map(_nested, value))}]"
        case dict():
            pairs = (f"{_nested(key)}: {_nested(of)}" for key, of in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return json.dumps(value, ensure_ascii=False)
