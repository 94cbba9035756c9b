"""Reads a configuration: all entries are checked, all problems reported at once."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines import ENGINES
from evermat.errors import EvermatError, Label, Span, raise_all
from evermat.errors import Source as SourceText
from evermat.errors.redaction import keep_secret_options, redacted
from evermat.io.databases import is_database, relative_to
from evermat.io.files import COMPRESSIONS, RDF_SUFFIXES, FileMissingError
from evermat.io.places import decoded
from evermat.io.toml_text import read_toml
from evermat.kb.equality import Equality
from evermat.lang.lexer import is_absolute
from evermat.lang.syntax import TRIPLE
from evermat.maintenance.algorithms import NAMES as ALGORITHMS
from evermat.pipeline.config import (
    DATABASE_FORMATS,
    FORMATS,
    RDF_FORMATS,
    TABLE_FORMATS,
    Argument,
    Bound,
    Column,
    Config,
    Database,
    EngineSettings,
    Expectation,
    FactMap,
    Limit,
    Output,
    Problems,
    Section,
    Source,
    StreamSettings,
    WrittenFloat,
    advice_for,
    as_word,
    output_place,
)
from evermat.pipeline.errors import ConfigError
from evermat.pipeline.intake import needed_columns
from evermat.pipeline.mapping import HOLE, TYPES, in_utc
from evermat.values import NOT_IN_IRI, constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# ---------------------------------------------------------------------- places in TOML

# The positions of the entries of a TOML text, for errors that point at them.
#
# The parser of the standard library discards positions. They are found again by
# scanning lines: headers of tables, and the keys below them. An entry in an inline
# table that spans several lines is located at the key of that table.

Step = str | int
Route = tuple[Step, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w\-]+)(?:\s*\.\s*[\w\-]+)*)\s*=""")
_PART = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w\-]+)\s*""")


class Places:
    """The positions of the entries of a TOML text."""

    def __init__(self, name: str, text: str) -> None:
        self._source = SourceText(name, text)
        self._known: dict[Route, tuple[int, int]] = {}
        for route, start, end in _entries(text):
            self._known.setdefault(route, (start, end))

    def label(self, route: Route, remark: str = "") -> Label:
        """Return a label for an entry, or for the closest one around it."""
        for length in range(len(route), 0, -1):
            place = self._known.get(route[:length])
            if place is not None:
                start, end = self._narrowed(place, route[length:])
                return Label(Span(self._source, start, end), remark)
        return Label(Span(self._source, 0, 1), remark)

    def _narrowed(self, place: tuple[int, int], rest: Route) -> tuple[int, int]:
        """Return the key of an entry of an inline table, if it is on the same line."""
        text = self._source.text
        stop = text.find("\n", place[1])
        line_end = len(text) if stop < 0 else stop
        for step in reversed(rest):
            found = re.compile(rf"(?<![\w\-]){re.escape(str(step))}(?![\w\-])").search(
                text, place[1], line_end
            )
            if found is not None and isinstance(step, str):
                return found.span()
        return place


def toml_error(name: str, text: str, error: tomllib.TOMLDecodeError) -> Label | None:
    """Return the position reported by the parser."""
    found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    if found is None:
        return None
    lines = text.split("\n")
    line, column = int(found[1]), int(found[2])
    start = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
    return Label(Span(SourceText(name, text), start, start + 1))


def _entries(text: str) -> Iterator[tuple[Route, int, int]]:
    counts: dict[Route, int] = {}
    table: Route = ()
    offset = 0
    for line in text.split("\n"):
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if header and not key:
            is_list = header[1] == "[["
            table = _opened(_parts(header[2]), counts, is_list=is_list)
            yield table, offset + header.start(1), offset + len(line.rstrip())
            if is_list:
                yield table[:-1], offset + header.start(1), offset + len(line.rstrip())
        elif key:
            route = (*table, *_parts(key[1]))
            yield route, offset + key.start(1), offset + key.end(1)
        offset += len(line) + 1


def _parts(text: str) -> list[str]:
    return [part[1].strip("\"'") for part in _PART.finditer(text)]


def _opened(parts: list[str], counts: dict[Route, int], *, is_list: bool) -> Route:
    """Return the route of a header: `[[a]]` begins the next element."""
    route: Route = ()
    for at, part in enumerate(parts):
        route = (*route, part)
        is_last = at == len(parts) - 1
        if is_last and is_list:
            counts[route] = counts.get(route, -1) + 1
        if route in counts:
            route = (*route, counts[route])
    return route


# ------------------------------------------------------------------- columns and facts

_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*(--(ltr|rtl))?")
_ARGUMENT_KINDS = ("column", "iri", "text", "value")


def columns_of(section: Section) -> list[Column]:
    """Return the columns that a source declares."""
    found = []
    for name in section.keys:
        value = section.any(name)
        if isinstance(value, str):
            value = {"type": value}
        if not isinstance(value, dict):
            section.wrong_type(name, "a type or a table")
            continue
        entry = Section(value, (*section.route, name), section.problems)
        found.append(_column(name, entry))
        entry.finish()
    section.finish()
    return found


def _column(name: str, entry: Section) -> Column:
    pattern = entry.optional_text("pattern")
    if pattern is not None:
        try:
            # Values are matched by Arrow, whose syntax is smaller than Python's.
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            entry.problem("pattern", f"not a regular expression: {error}")
            pattern = None
    kind = entry.choice("type", sorted(TYPES), "string") if "type" in entry else None
    return Column(
        name=name,
        type=kind,
        required=entry.flag("required", default=True),
        pattern=pattern,
        minimum=_bound(entry, "min", kind),
        maximum=_bound(entry, "max", kind),
        one_of=tuple(map(str, entry.get("one_of", list, []))),
    )


_BOUNDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("integer", "decimal", "double"), ((int, float), "a number")),
    **dict.fromkeys(("string", "iri"), ((str,), "a text")),
    **dict.fromkeys(("date", "datetime"), ((datetime.date,), "a date")),
}
"""The types of bounds by column type; dates and times are Python's dates."""


def _bound(entry: Section, key: str, kind: str | None) -> Bound | None:
    value = entry.any(key)
    anything = ((int, float, str, datetime.date), "a number, a text or a date")
    fitting, called = _BOUNDS.get(kind or "", anything)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, fitting):
        entry.wrong_type(key, called)
        return None
    match value:
        case datetime.datetime():
            return constant(in_utc(value)).text.partition("\0")[2]
        case datetime.date():
            return value.isoformat()
        case WrittenFloat():
            return value.exact
        case _:
            return cast("Bound", value)


def facts_of(section: Section, *, is_rdf: bool) -> tuple[FactMap, ...]:
    """Return the facts that rows of a source become."""
    predicate = section.text("predicate", TRIPLE if is_rdf else "")
    arguments = [] if is_rdf else section.get("arguments", list, [])
    facts = []
    if predicate:
        facts.append(FactMap(predicate, _arguments(section, "arguments", arguments)))
    for entry in [] if is_rdf else section.tables("facts"):
        name = entry.required_text("predicate")
        listed = entry.get("arguments", list, [])
        facts.append(FactMap(name, _arguments(entry, "arguments", listed)))
        entry.finish()
    if not facts:
        section.problems.add(
            section.route,
            f"{section.name} does not say what facts it gives",
            advice='write `predicate = "…"`, or [[source.facts]] tables',
        )
    return tuple(facts)


def _arguments(
    section: Section, key: str, listed: Sequence[object]
) -> tuple[Argument, ...]:
    found = []
    for at, each in enumerate(listed):
        route = (*section.route, key, at)
        if isinstance(each, str):
            found.append(Argument("column", each))
            continue
        kinds = [
            kind for kind in _ARGUMENT_KINDS if isinstance(each, dict) and kind in each
        ]
        if not isinstance(each, dict) or len(kinds) != 1:
            section.problems.add(
                route,
                f"argument {at + 1} of {section.name} is neither a column nor a table "
                "with one of column, iri, text and value",
                advice='write "name", { iri = "http://…/{id}" }, { text = "…" } or '
                "{ value = 7 }",
            )
            continue
        entry = Section(each, route, section.problems)
        found.append(_argument(kinds[0], entry))
        entry.finish()
    return tuple(found)


def _argument(kind: Any, entry: Section) -> Argument:  # noqa: ANN401  one of the kinds
    if kind == "value":
        value = entry.any("value")
        try:
            known = constant(value)
        except EvermatError as error:
            entry.problem("value", error.message, error.help)
            known = constant("")
        return Argument("value", known.text, int(known.kind))
    text = entry.text(kind)
    if kind == "iri" and re.search(NOT_IN_IRI, HOLE.sub("", text)):
        entry.problem("iri", f"`{text}` is not an IRI, whatever the columns are")
    elif kind == "iri" and not is_absolute(text):
        entry.problem(
            "iri",
            f"`{text}` is relative, and there is nothing that it could be relative to",
            "begin it with a scheme, such as http: or urn:",
        )
    language = None if kind == "iri" else entry.optional_text("language")
    if language is not None and not _LANGUAGE.fullmatch(language):
        entry.problem("language", f"`{language}` is not a tag of a language")
    return Argument(kind, text, language=language)


# ---------------------------------------------------------------------------- the file

_SUFFIXES = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".json": "json",
    ".jsonl": "json", ".ndjson": "json", **RDF_SUFFIXES,
}  # fmt: skip
_OUTPUT_FORMATS = ("parquet", "csv", "tsv", "nt", "table", "database")
_NAME = re.compile(r"[\w.\-]+")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def read_config(file: str | Path) -> Config:
    """Read a configuration.

    Raises:
        ConfigError: it is invalid; `problems` lists everything.
        FileMissingError: the file does not exist.
    """
    file = Path(file)
    if file.is_dir():
        raise ConfigError(
            f"`{file}` is a folder", help="name the TOML file of the pipeline"
        )
    if not file.is_file():
        raise FileMissingError(file)
    text = decoded(file, file.read_bytes())
    try:
        content = read_toml(text, file.name, parse_float=WrittenFloat)
    except tomllib.TOMLDecodeError as error:
        label = toml_error(str(file), text, error)
        message = str(error).partition(" (at line")[0]
        raise ConfigError(
            f"`{file.name}` is not TOML: {message[:1].lower()}{message[1:]}",
            labels=() if label is None else (label,),
        ) from error
    problems = Problems(Places(str(file), text))
    config = _Reader(file, problems).config(Section(content, (), problems))
    raise_all(list(problems.found))
    keep_secret_options(dict(config.state_options))
    keep_secret_options(dict(config.engine.conf))
    for source in config.sources:
        if source.database is not None:
            keep_secret_options(dict(source.database.options))
    if config.stream is not None:
        keep_secret_options(dict(config.stream.options))
    return config


class _Reader:
    """Converts tables to parts of a configuration."""

    def __init__(self, file: Path, problems: Problems) -> None:
        self._file = file
        self._folder = file.resolve().parent
        self._problems = problems

    def config(self, top: Section) -> Config:
        program = top.table("program")
        state = top.table("state")
        config = Config(
            file=self._file,
            name=top.text("name") or self._file.stem,
            rules=self._files(program, "rules"),
            ontologies=self._files(program, "ontologies"),
            text=program.text("text"),
            allow_paths=self._places(program, "allow_paths"),
            sources=tuple(self._source(each) for each in top.tables("source")),
            engine=_engine(top.table("engine")),
            state=self._place(state.optional_text("path")),
            state_options=_texts_of(state.table("options")),
            outputs=tuple(self._output(each) for each in top.tables("output")),
            expectations=tuple(map(_expectation, top.tables("expect"))),
            rejected=self._only_path(top.table("rejected"), "rejected"),
            reports=self._only_path(top.table("report"), "runs"),
            stream=self._stream(top.table("stream")) if "stream" in top else None,
        )
        program.finish()
        state.finish()
        top.finish()
        self._require_names(config.sources, "source")
        self._require_names(config.outputs, "output")
        self._require_names(config.expectations, "expect")
        self._require_one_way(config.sources)
        self._require_places(config.outputs)
        return config

    # ------------------------------------------------------------------- places

    def _place(self, path: str | None) -> str | None:
        """Return an absolute path, or the URI as it is."""
        if path is None or "://" in path:
            return path
        return str(self._folder / path)

    def _places(self, section: Section, key: str) -> tuple[str, ...]:
        return tuple(str(self._place(path)) for path in section.texts(key))

    def _only_path(self, section: Section, default: str) -> str:
        path = section.text("path", default)
        section.finish()
        return str(self._place(path))

    def _files(self, section: Section, key: str) -> tuple[Path, ...]:
        """Return files that are read immediately, so that they must exist."""
        found = []
        for at, name in enumerate(section.texts(key)):
            path = self._folder / name
            if path.is_file():
                found.append(path)
                continue
            self._problems.add(
                (*section.route, key, at),
                f"there is no file `{name}`",
                advice=f"paths are relative to `{self._file.parent}`",
            )
        return tuple(found)

    # ------------------------------------------------------------------- sources

    def _source(self, section: Section) -> Source:
        paths = self._places(section, "path")
        kind = _format(section, paths)
        is_rdf, is_database = kind in RDF_FORMATS, kind in DATABASE_FORMATS
        columns = () if is_rdf else tuple(columns_of(section.table("columns")))
        update = section.table("update")
        delimiter = "\t" if kind == "tsv" else ","
        source = Source(
            name=section.text("name") or _source_name(section, paths),
            format=kind,
            folder=str(self._folder),
            paths=paths,
            database=_database(section, kind, paths, self._folder)
            if is_database
            else None,
            columns=columns,
            facts=facts_of(section, is_rdf=is_rdf),
            limit=_limit(section),
            insert=self._places(update, "insert"),
            delete=self._places(update, "delete"),
            base=section.optional_text("base") if is_rdf else None,
            **_text_options(section, kind, delimiter),
        )
        update.finish()
        section.finish()
        if not is_database and not paths:
            self._problems.add(section.route, f"{section.name} has no `path`")
        _check_source(section, source)
        return source

    # ------------------------------------------------------------------- outputs

    def _output(self, section: Section) -> Output:
        one = section.text("predicate")
        predicates = ([one] if one else []) + section.texts("predicates")
        query = section.optional_text("query")
        kind = section.choice("format", _OUTPUT_FORMATS, "parquet")
        known = as_word("_".join(predicates), otherwise="answers")
        is_database = kind == "database"
        output = Output(
            name=section.text("name") or known,
            predicates=tuple(predicates),
            query=query,
            format=kind,  # type: ignore[arg-type]
            path=self._place(section.optional_text("path")),
            table=section.text("table", "{predicate}" if is_database else "") or None,
            url=_address(section, self._folder) if is_database else None,
            password_variable=(
                section.optional_text("password_variable") if is_database else None
            ),
            mode=section.choice("mode", ("full", "changes"), "full"),
        )
        section.finish()
        self._check_output(section, output)
        return output

    def _check_output(self, section: Section, output: Output) -> None:
        route = section.route
        if bool(output.predicates) == (output.query is not None):
            self._problems.add(
                route,
                f"{section.name} has to name predicates, or a query",
                advice='write `predicate = "…"`, or `name` and `query = "…"`',
            )
        key = "table" if output.format in TABLE_FORMATS else "path"
        place = output.table if key == "table" else output.path
        if place is None:
            self._problems.add(route, f"{section.name} has no `{key}`")
        if output.format == "database" and output.mode == "changes":
            section.problem(
                "mode",
                "a table of a database is written in full",
                "write changes to a folder, or leave `mode` out",
            )
        if output.query is not None and output.mode == "changes":
            section.problem(
                "mode",
                "the changes of a query are not known",
                "make the query a rule, and write its predicate",
            )

    # -------------------------------------------------------------------- stream

    def _stream(self, section: Section) -> StreamSettings:
        state = str(self._place("stream"))
        settings = StreamSettings(
            format=section.required_text("format", "such as json, parquet or kafka"),
            path=self._place(section.optional_text("path")),
            options=_texts_of(section.table("options")),
            feed=str(self._place(section.text("feed") or f"{state}/feed")),
            dead_letters=str(
                self._place(section.text("dead_letters") or f"{state}/dead_letters")
            ),
            checkpoint=str(
                self._place(section.text("checkpoint") or f"{state}/checkpoint")
            ),
            events=section.choice("events", ("json", "csv"), "json"),
            schema=section.optional_text("schema"),
            trigger=_trigger(section),
            app_id=section.text("app_id", self._file.stem),
        )
        section.finish()
        return settings

    # ------------------------------------------------------------------ together

    def _require_names(
        self, parts: Sequence[Source | Output | Expectation], kind: str
    ) -> None:
        seen: set[str] = set()
        for at, part in enumerate(parts):
            if part.name in seen:
                self._problems.add(
                    (kind, at, "name"),
                    f"two of [[{kind}]] are called `{part.name}`",
                    advice="give each a `name` of its own",
                )
            if not _NAME.fullmatch(part.name):
                self._problems.add(
                    (kind, at, "name"),
                    f"`{part.name}` cannot be the name of a {kind}",
                    advice="use letters, digits, dots and dashes",
                )
            seen.add(part.name)

    def _require_places(self, outputs: Sequence[Output]) -> None:
        """Check that outputs do not overwrite each other."""
        seen: dict[str, str] = {}
        for at, output in enumerate(outputs):
            key = "table" if output.format in TABLE_FORMATS else "path"
            for what in output.predicates or (output.name,):
                # Some file systems are case-insensitive.
                place = output_place(output, what).rstrip("/").casefold()
                if place and output.url is not None:
                    place = f"{output.url} {place}"
                if place in seen:
                    self._problems.add(
                        ("output", at, key),
                        f"`{what}` would go where `{seen[place]}` goes",
                        advice=f"give each a `{key}` of its own; `{{predicate}}` in it "
                        "stands for the name",
                    )
                elif place:
                    seen[place] = what

    def _require_one_way(self, sources: Sequence[Source]) -> None:
        """Check that all sources of a predicate have change files, or none."""
        ways: dict[str, tuple[bool, str]] = {}
        for at, source in enumerate(sources):
            for predicate in source.predicates:
                has_changes, other = ways.setdefault(
                    predicate, (source.has_changes, source.name)
                )
                if has_changes != source.has_changes:
                    self._problems.add(
                        ("source", at, "update"),
                        f"`{predicate}` comes from `{other}` and `{source.name}`, and "
                        "only one of them has `update`",
                        advice="give both `update`, or neither",
                    )


# ------------------------------------------------------------------- parts of a source


def _format(section: Section, paths: Sequence[str]) -> Any:  # noqa: ANN401  a Format
    if "format" in section:
        return section.choice("format", FORMATS, "parquet")
    section.text("format")
    named = dict.fromkeys(
        each for each in map(_named_format, paths) if each is not None
    )
    if len(named) > 1:
        section.problem(
            "path",
            f"the paths of {section.name} are of several formats: {', '.join(named)}",
            "write a [[source]] for each format",
        )
    if not named:
        section.problems.add(
            section.route,
            f"{section.name} has no `format`, and its path does not say it",
            advice=f"write one of {', '.join(FORMATS)}",
        )
    return next(iter(named), "parquet")


def _named_format(path: str) -> str | None:
    """Return the format of a path's suffix."""
    name = PurePosixPath(path.rstrip("*"))
    if name.suffix.lower() in COMPRESSIONS:
        name = name.with_suffix("")
    return _SUFFIXES.get(name.suffix.lower())


def _source_name(section: Section, paths: Sequence[str]) -> str:
    """Return a name derived from the predicate, or else from the file."""
    known = section.any("predicate")
    if not isinstance(known, str):
        known = PurePosixPath(paths[0]).name.partition(".")[0] if paths else ""
    return as_word(known, otherwise="source")


def _text_options(section: Section, kind: str, delimiter: str) -> dict[str, Any]:
    if kind not in {"csv", "tsv"}:
        return {}
    chosen = section.text("delimiter", delimiter)
    if len(chosen) != 1:
        section.problem("delimiter", "a delimiter is one character")
    return {
        "header": section.flag("header", default=True),
        "delimiter": chosen,
        "multiline": section.flag("multiline", default=False),
    }


def _database(
    section: Section, kind: str, paths: tuple[str, ...], folder: Path
) -> Database:
    if kind == "table":
        return Database(table=section.required_text("table"))
    if kind == "spark":
        return Database(
            reader=section.required_text("reader", "such as delta, orc or avro"),
            paths=paths,
            options=_texts_of(section.table("options")),
        )
    if kind == "database":
        database = Database(
            url=_address(section, folder),
            table=section.optional_text("table"),
            query=section.optional_text("query"),
            password_variable=section.optional_text("password_variable"),
        )
    else:
        database = _by_jdbc(section)
    if (database.table is None) == (database.query is None):
        section.problems.add(
            section.route, f"{section.name} needs `table` or `query`, and not both"
        )
    return database


def _address(section: Section, folder: Path) -> str:
    """Return the address of a database that is accessed without Spark."""
    url = section.required_text("url", "such as postgresql://user@host/database")
    if url and not is_database(url):
        section.problem(
            "url",
            f"`{redacted(url)}` is no address of a database",
            "write postgresql://…, sqlite:///file.db, duckdb:///file.duckdb, or a URL "
            'of SQLAlchemy; for jdbc:… write format = "jdbc"',
        )
    return relative_to(folder, url)


def _by_jdbc(section: Section) -> Database:
    return Database(
        url=section.required_text("url", "such as jdbc:postgresql://host/database"),
        table=section.optional_text("table"),
        query=section.optional_text("query"),
        user=section.optional_text("user"),
        password_variable=section.optional_text("password_variable"),
        driver=section.optional_text("driver"),
        partition_column=section.optional_text("partition_column"),
        lower=section.number("lower"),
        upper=section.number("upper"),
        partitions=section.number("partitions"),
    )


def _limit(section: Section) -> Limit:
    value = section.any("max_rejected")
    match value:
        case None:
            return Limit()
        case bool():
            pass
        case int() if value >= 0:
            return Limit(rows=value)
        case str() if found := _PERCENT.fullmatch(value):
            return Limit(rows=None, share=float(found[1]) / 100)
        case "all":
            return Limit(rows=None)
    section.problem(
        "max_rejected",
        "`max_rejected` is neither a number of rows nor a share",
        'write 10, "1%" or "all"',
    )
    return Limit()


def _check_source(section: Section, source: Source) -> None:
    """Check conditions on several entries."""
    if source.database is not None:
        for key in ("path", "update"):
            if key in section and (key, source.format) != ("path", "spark"):
                section.problem(
                    key,
                    f"`{key}` is about files, and {section.name} is a database",
                    "leave it out: an update reads the table or query as a whole",
                )
    if source.format == "json" and not source.columns:
        section.problems.add(
            section.route,
            f"{section.name} needs [source.columns]: objects have no order",
        )
    if source.format in {"csv", "tsv"} and not source.header and not source.columns:
        section.problems.add(
            section.route, f"{section.name} has no header and no [source.columns]"
        )
    declared = {column.name for column in source.columns}
    for name in needed_columns(source):
        if declared and name not in declared:
            section.problem(
                "columns",
                f"`{name}` is not among the columns of {section.name}",
                advice_for(name, sorted(declared)),
            )


def _engine(section: Section) -> EngineSettings:
    settings = EngineSettings(
        name=section.choice("name", sorted(ENGINES), "spark"),
        place=section.choice("place", ("auto", "driver", "distributed"), "auto"),
        master=section.optional_text("master"),
        algorithm=section.choice("algorithm", ALGORITHMS, "auto"),
        equality=section.choice("equality", get_args(Equality), "auto"),
        contradictions=(
            "refuse"
            if section.choice("contradictions", ("report", "refuse"), "report")
            == "refuse"
            else "ignore"
        ),
        conf=_texts_of(section.table("conf")),
    )
    section.finish()
    return settings


def _expectation(section: Section) -> Expectation:
    none, some = section.text("none"), section.text("some")
    if bool(none) == bool(some):
        section.problems.add(
            section.route,
            f"{section.name} has to name a query, in one way",
            advice='write `none = "overdue(?x)"`, or `some = "…"`',
        )
    query = some or none
    found = Expectation(
        name=section.text("name") or as_word(query, otherwise="expectation"),
        query=query,
        wants_some=bool(some),
        action=section.choice("action", ("fail", "warn", "quarantine"), "fail"),
    )
    section.finish()
    return found


def _trigger(section: Section) -> str | float:
    value = section.any("trigger")
    if value is None or value == "once":
        return "once"
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    section.problem(
        "trigger", "`trigger` of stream is not known", 'write "once", or seconds'
    )
    return "once"


def _texts_of(section: Section) -> tuple[tuple[str, str], ...]:
    """Return settings with arbitrary names; numbers and Booleans become strings."""
    found = []
    for key in section.keys:
        value = section.any(key)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, str | int | float):
            section.wrong_type(key, "a text or a number")
            continue
        found.append((key, str(value)))
    return tuple(found)
