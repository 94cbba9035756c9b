"""Programs in files, and the files of facts that they name.

`read_program` reads a program in Evermat's language or another dialect. Its directives
about data (`@import`, `.input`, `@export`, `.output`) become its sources and sinks;
`load_sources` reads the former, `write_sinks` writes the latter. The options of sources
and sinks are listed in `docs/other_syntaxes.md`.
"""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO, get_args

import pyarrow as pa

from evermat.columns import plain_texts, term_table
from evermat.errors import EvermatError, Label, Source
from evermat.io.column_types import TYPES
from evermat.io.delimited import DIALECTS, Dialect, read_delimited
from evermat.io.files import (
    DataFile,
    FileMissingError,
    FileOptionError,
    data_file,
    require_place,
)
from evermat.io.headers import ask_about_header
from evermat.io.nemo_tables import nemo_cells, read_nemo_table
from evermat.io.tables import read_table, rows_together
from evermat.io.writing import require_writable, write_table
from evermat.lang.catalogue import names_in_atoms
from evermat.lang.dialects.dlog import read_dlog
from evermat.lang.dialects.nemo import read_nemo
from evermat.lang.dialects.souffle import read_souffle
from evermat.lang.dialects.sparql_rl import read_sparql_rl
from evermat.lang.parser import parse_program, program_text, require_moderate
from evermat.rdf.writing import write_facts
from evermat.runtime.input_limits import is_allowed, require_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evermat.lang.syntax import (
        DataSink,
        DataSource,
        Declaration,
        Program,
        Rule,
    )

Syntax = Literal["auto", "evermat", "souffle", "nemo", "dlog", "sparql-rl"]

SYNTAXES: tuple[Syntax, ...] = get_args(Syntax)
"""The names of the supported languages; `auto` inspects the file name and the text."""

_BY_SUFFIX: dict[str, Syntax] = {".rls": "nemo", ".dlog": "dlog", ".srl": "sparql-rl"}
_SIGNS: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    (
        "souffle",
        re.compile(r"^\s*\.(decl|type|input|output|comp|pragma)\b", re.MULTILINE),
    ),
    ("nemo", re.compile(r"^\s*@(import|export)\s+\S+\s*:-", re.MULTILINE)),
    ("nemo", re.compile(r"^\s*@(source|output|parameter)\s", re.MULTILINE)),
    (
        "sparql-rl",
        re.compile(r"^\s*RULE\b[^{}()]*\{", re.MULTILINE | re.IGNORECASE),
    ),
    ("dlog", re.compile(r"^\s*PREFIX\s+[\w\-]*:\s*<", re.MULTILINE)),
)
_RDF_FORMATS = {
    "ntriples": "nt",
    "nquads": "nq",
    "turtle": "ttl",
    "trig": "trig",
    "rdfxml": "rdf",
}
_IMPORT_OPTIONS = ("format", "columns", "types", "header", "delimiter", "quoting")
_EXPORT_OPTIONS = ("format", "header")
_STANDARD_OUTPUT = "-"


class UnknownSyntaxError(EvermatError, ValueError):
    """An unknown rule language."""

    code = "EM731"


class SkippedRowsWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Rows of a file were skipped because they do not fit their predicate."""

    code = "EM733"


# -------------------------------------------------------------------- programs


def read_program(
    program: str | Path,
    syntax: Syntax = "auto",
    *,
    folder: Path | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Program:
    """Read a program.

    Args:
        program: the text of a program, or the path of a file, which may end in `.gz`.
        syntax: `evermat`, `souffle`, `nemo` (also Rulewerk), `dlog` (VLog and RDFox),
            `sparql-rl`; `auto` decides by the suffix and by features of the text.
        folder: the folder in which `@include` finds files; by default that of the
            program.
        parameters: values for the parameters of a Nemo program.

    Raises:
        ParseError: the text is not in the language.
        UnsupportedSyntaxError: the program uses an unsupported feature.

    >>> read_program(".decl p(x:number)  p(1).").facts[0].predicate
    'p'
    """
    if syntax not in SYNTAXES:
        raise UnknownSyntaxError(
            f"there is no syntax `{syntax}`",
            help=f"use one of {', '.join(SYNTAXES)}",
        )
    name, text = "<rules>", str(program)
    if isinstance(program, Path):
        name, text = str(program), program_text(program)
        folder = folder or program.parent
    require_moderate(Source(name, text))
    match recognised(name, text) if syntax == "auto" else syntax:
        case "souffle":
            return read_souffle(text, name=name)
        case "nemo":
            return read_nemo(text, name=name, parameters=parameters)
        case "dlog":
            return read_dlog(text, name=name)
        case "sparql-rl":
            return read_sparql_rl(text, name=name)
        case _:
            return parse_program(text, name=name, folder=folder)


def recognised(name: str, text: str) -> Syntax:
    """Detect the language of a program from the suffix of its name and from its text.

    >>> recognised("graph.dl", "edge(?x, ?y) :- link(?x, ?y) .")
    'evermat'
    """
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    for syntax, sign in _SIGNS:
        if sign.search(text):
            return syntax
    return "evermat"


# --------------------------------------------------------------------- sources


def load_sources(
    program: Program,
    folder: Path,
    *,
    read_rdf: Callable[[DataFile], pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """Read the files that a program names, by predicate.

    Args:
        program: the program; its `sources` are read.
        folder: the base of relative paths; a file that is not there is also searched
            for in the folder `facts` below, as is usual for Soufflé.
        read_rdf: reads RDF files into tables of three columns.

    Raises:
        FileMissingError: a file does not exist.
        MalformedFileError, ValueFormatError: a file does not have the format that the
            program specifies; with file, line and column.

    Warns:
        SkippedRowsWarning: rows were skipped, as the language requires.
        HeaderWarning: a first row that was read as a fact looks like names.
    """
    found: dict[str, list[pa.Table]] = {}
    declared = {each.predicate: each for each in program.declarations}
    for source in program.sources:
        declaration = declared.get(source.predicate)
        file = _Source(source, folder, declaration, read_rdf, program.rules)
        found.setdefault(source.predicate, []).append(file.read())
    return {name: rows_together(name, tables) for name, tables in found.items()}


@dataclass(slots=True)
class _Source:
    """One file to be read."""

    source: DataSource
    folder: Path
    declaration: Declaration | None
    read_rdf: Callable[[DataFile], pa.Table] | None
    rules: tuple[Rule, ...]

    def read(self) -> pa.Table:
        """Read the rows, with columns in the predicate's order, and their names."""
        try:
            table = self._read()
            names = self._declared_names()
            is_whole = names is not None and len(names) == table.num_columns
            return table.rename_columns(list(names or ())) if is_whole else table
        except FileMissingError as error:
            raise FileMissingError(error.path, self.source.span) from None

    def _read(self) -> pa.Table:
        options = dict(self.source.options)
        path = self._place()
        if "form" in options:
            form = _RDF_FORMATS.get(options["form"])
            return self._read_rdf(data_file(path, format=form))
        if options.get("rows") == "lenient":
            return self._read_leniently(path, options)
        if options.get("values") == "plain":
            return self._read_strictly(path, options)
        return self._read_own(path, options)

    def _place(self) -> Path:
        """Return the folder of the file with the directive, perhaps an included one."""
        span, path = self.source.span, self.source.path
        own = self.folder
        if span is not None and not span.source.name.startswith("<"):
            own = Path(span.source.name).parent
        places = [own / path, self.folder / path, self.folder / "facts" / path]
        allowed = [place for place in places if is_allowed(place, self.folder)]
        if not {*allowed} & {*places[:2]}:
            require_allowed(places[0], self.folder, self._labels())
        return next((place for place in allowed if place.exists()), allowed[0])

    def _read_rdf(self, file: DataFile) -> pa.Table:
        if self.read_rdf is None:
            raise self._refused(f"cannot read RDF from `{self.source.path}` here")
        return self.read_rdf(file)

    def _read_leniently(self, path: Path, options: Mapping[str, str]) -> pa.Table:
        types = options.get("types")
        limit = options.get("limit")
        read = read_nemo_table(
            self._file(path, options),
            delimiter=options.get("delimiter", ","),
            quoting=options.get("quoting") != "none",
            header=options.get("header") == "true",
            types=None if types is None else types.split(","),
            limit=None if limit is None else int(limit),
        )
        if read.skipped:
            rows = "1 row was" if read.skipped == 1 else f"{read.skipped} rows were"
            warning = SkippedRowsWarning(
                f"{rows} left out of `{self.source.path}`",
                labels=self._labels(),
                reason="a row has one value of the right type for each column",
            )
            warnings.warn(warning, stacklevel=4)
        return read.table

    def _read_strictly(self, path: Path, options: Mapping[str, str]) -> pa.Table:
        types = [name for name in options.get("types", "").split(",") if name]
        dialect = Dialect(
            delimiter=options.get("delimiter", "\t"),
            quoting=options.get("quoting") == "double",
            header=options.get("header") == "true",
        )
        file = self._file(path, options)
        return read_delimited(file, dialect, types=types, arity=len(types))

    def _read_own(self, path: Path, options: Mapping[str, str]) -> pa.Table:
        """Read an `@import` of Evermat's language, with the options of `read_table`."""
        for name in options:
            if name not in _IMPORT_OPTIONS:
                raise self._refused(f"there is no option `{name}` of `@import`")
        file = data_file(path, format=options.get("format"))
        if file.is_rdf:
            return self._read_rdf(file)
        columns = _listed(options, "columns") or self._declared_names()
        table = read_table(
            path,
            format=options.get("format"),
            columns=columns,
            types=_listed(options, "types") or self._declared_types(file),
            arity=None if self.declaration is None else self.declaration.arity,
            header=_truth(self.source, "header"),
            delimiter=options.get("delimiter"),
            quoting=_truth(self.source, "quoting"),
        )
        if columns is None and "header" not in options:
            self._ask_about_header(table, file)
        return table

    def _ask_about_header(self, table: pa.Table, file: DataFile) -> None:
        dialect, name = DIALECTS.get(file.format), self.source.predicate
        if dialect is not None and dialect.header is None:
            path = Path(self.source.path)
            ask_about_header(
                table, path, name, lambda: names_in_atoms(self.rules, name)
            )

    def _declared_names(self) -> Sequence[str] | None:
        names = () if self.declaration is None else self.declaration.column_names
        return names if any(names) else None

    def _declared_types(self, file: DataFile) -> Sequence[str | None] | None:
        """Return the declared types, where strings can be converted to them."""
        declared = () if self.declaration is None else self.declaration.column_types
        # Other formats have their own types and names.
        if file.format not in DIALECTS and not self._declared_names():
            return None
        return [each if each in TYPES else None for each in declared] or None

    def _file(self, path: Path, options: Mapping[str, str]) -> DataFile:
        file = data_file(path, format="csv")
        compression = options.get("compression")
        if compression is None:
            return file
        return replace(file, compression=None if compression == "none" else compression)

    def _refused(self, message: str) -> FileOptionError:
        return FileOptionError(message, labels=self._labels())

    def _labels(self) -> tuple[Label, ...]:
        return _labels(self.source)


def _listed(options: Mapping[str, str], name: str) -> list[str] | None:
    text = options.get(name)
    return None if text is None else [part.strip() for part in text.split(",")]


def _truth(file: DataSource | DataSink, name: str) -> bool | None:
    text = dict(file.options).get(name)
    if text not in {None, "true", "false"}:
        raise FileOptionError(
            f"the option `{name}` is neither `true` nor `false`: `{text}`",
            labels=_labels(file),
        )
    return None if text is None else text == "true"


def _labels(file: DataSource | DataSink) -> tuple[Label, ...]:
    return () if file.span is None else (Label(file.span),)


# ----------------------------------------------------------------------- sinks


def write_sinks(
    program: Program,
    facts: Callable[[str], pa.Table],
    folder: Path,
    *,
    stream: TextIO | None = None,
) -> list[Path]:
    """Write the files of a program's sinks; return the paths of those written.

    Args:
        program: the program; its `sinks` are written.
        facts: returns the facts of a predicate, as term columns.
        folder: the base of relative paths.
        stream: the replacement for standard output.
    """
    require_sinks(program, folder)
    written: list[Path] = []
    for sink in program.sinks:
        table = facts(sink.predicate)
        if sink.path == _STANDARD_OUTPUT:
            print(_shown(sink, table), file=stream or sys.stdout)
            continue
        path = folder / sink.path
        _write(sink, table, path)
        written.append(path)
    return written


def require_sinks(program: Program, folder: Path) -> None:
    """Check that all files can be written, before writing the first.

    Raises:
        UnwritablePlaceError: a path in `folder` cannot be written to.
        UnknownFormatError: writing the format is not supported.
        FileOptionError: an option of `@export` does not exist, or has a wrong value.
    """
    for sink in program.sinks:
        if sink.path == _STANDARD_OUTPUT:
            continue
        path, options = folder / sink.path, dict(sink.options)
        require_allowed(path, folder, _labels(sink))
        require_place(path)
        if options.keys() & {"form", "values"}:
            continue
        require_writable(data_file(path, format=options.get("format")))
        for name in options:
            if name not in _EXPORT_OPTIONS:
                message = f"there is no option `{name}` of `@export`"
                raise FileOptionError(message, labels=_labels(sink))
        _truth(sink, "header")


def _shown(sink: DataSink, table: pa.Table) -> str:
    """Format output like Soufflé: `name<tab>count`, or the rows under a heading."""
    if dict(sink.options).get("values") == "size":
        return f"{sink.predicate}\t{table.num_rows}"
    rule = "-" * 15
    columns = [plain_texts(column).to_pylist() for column in term_table(table).columns]
    rows = ["\t".join(row) for row in zip(*columns, strict=True)]
    if not columns:
        rows = ["()"] * table.num_rows
    return "\n".join([rule, sink.predicate, "=" * len(rule), *rows, "=" * len(rule)])


def _write(sink: DataSink, table: pa.Table, path: Path) -> None:
    options = dict(sink.options)
    form = options.get("values")
    if "form" in options:
        format_name = _RDF_FORMATS.get(options["form"])
        write_facts(table, path, format=format_name, predicate=sink.predicate)
        return
    if form is None:
        header = options.get("header") == "true"
        name, format_name = sink.predicate, options.get("format")
        write_facts(table, path, format=format_name, predicate=name, header=header)
        return
    table = term_table(table)
    if form == "terms" and table.num_columns:
        cells = [nemo_cells(column) for column in table.columns]
        table = pa.table(cells, names=table.column_names)
    if "names" in options and table.num_columns:
        table = table.rename_columns(options["names"].split(","))
    dialect = Dialect(
        delimiter=options.get("delimiter", ","), quoting=options["quoting"] == "double"
    )
    header = options.get("header") == "true"
    write_table(table, path, format="csv", dialect=dialect, header=header)
