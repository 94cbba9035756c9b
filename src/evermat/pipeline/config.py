"""The configuration of a pipeline: its parts, checked and with full paths.

All of it is plain data that Spark can send to its workers.
`evermat.pipeline.config_file` makes these objects from a TOML file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from evermat.pipeline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evermat.kb.contradictions import Policy
    from evermat.kb.equality import Equality
    from evermat.pipeline.config_file import Places, Route


# ---------------------------------------------------------------------- configurations

Format = Literal[
    "parquet", "csv", "tsv", "json", "database", "jdbc", "table", "spark", "nt", "nq",
    "ttl", "trig", "rdf",
]  # fmt: skip
FORMATS: tuple[Format, ...] = (
    "parquet", "csv", "tsv", "json", "database", "jdbc", "table", "spark", "nt", "nq",
    "ttl", "trig", "rdf",
)  # fmt: skip
RDF_FORMATS = frozenset({"nt", "nq", "ttl", "trig", "rdf"})
LINE_FORMATS = frozenset({"csv", "tsv", "json", "nt", "nq"})
SPARK_FORMATS = frozenset({"jdbc", "table", "spark"})
"""Formats that only Spark reads."""

TABLE_FORMATS = frozenset({"table", "database"})
"""Formats of outputs that are not folders."""

DATABASE_FORMATS = SPARK_FORMATS | {"database"}

Bound = str | int | Decimal


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source: its type, and constraints on its values.

    Attributes:
        type: a name of `evermat.pipeline.mapping.TYPES`; None keeps the types of
            values, and reads those of text files as strings.
        required: whether a row without a value is rejected; otherwise the facts that
            would use it are left out.
        pattern: a regular expression for the whole string.
        minimum, maximum: inclusive bounds; numbers are exactly as written.
        one_of: the only allowed values.
    """

    name: str
    type: str | None = None
    required: bool = True
    pattern: str | None = None
    minimum: Bound | None = None
    maximum: Bound | None = None
    one_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """The definition of an argument of a fact.

    Attributes:
        kind: `column`, `iri` or `text` (templates with columns in braces), or `value`.
        text: the column, the template, or the text of the constant.
        value_kind: the kind of a constant, a number of `evermat.values.Kind`.
        language: the language of a string, if it has one.
    """

    kind: Literal["column", "iri", "text", "value"]
    text: str
    value_kind: int = 0
    language: str | None = None


@dataclass(frozen=True, slots=True)
class FactMap:
    """The mapping of a row to a fact; without arguments, all columns are the arguments.

    Attributes:
        declared: the names that the rules declare for the columns of the predicate.
            Without arguments, the columns of the source are matched by name.
        types: the types that the rules declare for them.
    """

    predicate: str
    arguments: tuple[Argument, ...] = ()
    declared: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of rejected rows: a number, or a share of all rows."""

    rows: int | None = 0
    share: float | None = None

    def allows(self, rejected: int, rows: int) -> bool:
        """Return whether `rejected` of `rows` rows are within the limit."""
        if self.share is not None:
            return rejected <= self.share * rows
        return self.rows is None or rejected <= self.rows

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share * 100:g}%"
        return "all" if self.rows is None else f"{self.rows:,}"


@dataclass(frozen=True, slots=True)
class Database:
    """A table or query of a database, or a source that only Spark reads.

    Attributes:
        reader, paths, options: a format of Spark's own readers, such as `delta`, `orc`
        or `avro`, with its paths and options.
        password_variable: the environment variable that contains the password.
        partition_column, lower, upper, partitions: read in this many parts in parallel,
        split between these values of a numeric column.
    """

    table: str | None = None
    query: str | None = None
    url: str | None = None
    user: str | None = None
    password_variable: str | None = None
    driver: str | None = None
    partition_column: str | None = None
    lower: int | None = None
    upper: int | None = None
    partitions: int | None = None
    reader: str | None = None
    paths: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """External rows, and the facts they become.

    Attributes:
        paths: files, folders or patterns, as absolute paths or URIs.
        insert, delete: the places of inserted and deleted rows for `update`; without
        them an update compares the whole source with its previous contents.
        header: whether text files begin with the names of their columns.
        multiline: whether quoted strings may span lines; files are not split then.
        base: the base of relative IRIs in RDF.
        folder: that of the configuration; names of files are relative to it.
    """

    name: str
    format: Format
    folder: str = ""
    paths: tuple[str, ...] = ()
    database: Database | None = None
    columns: tuple[Column, ...] = ()
    facts: tuple[FactMap, ...] = ()
    limit: Limit = field(default_factory=Limit)
    insert: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    header: bool = True
    delimiter: str = ","
    multiline: bool = False
    base: str | None = None

    @property
    def has_changes(self) -> bool:
        """Whether updates come as rows to insert and to delete."""
        return bool(self.insert or self.delete)

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates of this source's facts."""
        return tuple(dict.fromkeys(each.predicate for each in self.facts))


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The engine, and how Spark is to be started.

    Attributes:
        contradictions: `refuse` fails a run that causes some; the report of a run
            counts them in any case.
        place: the place of facts; by default, where there is memory for them.
    """

    name: str = "spark"
    place: Literal["auto", "driver", "distributed"] = "auto"
    master: str | None = None
    algorithm: str = "auto"
    equality: Equality = "auto"
    contradictions: Policy = "ignore"
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """An output.

    Attributes:
        predicates: the predicates to write, each to a place of its own; or
        query: a query whose answers are written.
        path: a folder; `{predicate}` is replaced by the name of the predicate.
        table: a table of Spark, or of a database, instead of a folder.
        url: the address of the database.
        password_variable: the environment variable that contains the password.
        mode: `full` writes everything each time, `changes` appends added and removed
            facts.
    """

    name: str
    predicates: tuple[str, ...] = ()
    query: str | None = None
    format: Literal["parquet", "csv", "tsv", "nt", "table", "database"] = "parquet"
    path: str | None = None
    table: str | None = None
    url: str | None = None
    password_variable: str | None = None
    mode: Literal["full", "changes"] = "full"


def output_place(output: Output, what: str) -> str:
    """Return the folder or table for a predicate, or for the answers of a query.

    A predicate may be an IRI, which is converted to the name of a folder or table.
    """
    pattern = output.table if output.format in TABLE_FORMATS else output.path
    word = as_word(what, otherwise="facts")
    return (pattern or "").replace("{predicate}", word)


def as_word(text: str, *, otherwise: str) -> str:
    """Convert a string such as an IRI to a name of letters, digits, dots and dashes."""
    word = re.sub(r"[^\w.\-]+", "_", text).strip("_") or otherwise
    # `.` and `..` are special folders, and names that begin with a dot are hidden.
    return re.sub(r"^\.+", "_", word)


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition for publishing results.

    Attributes:
        query: a query that must have some answers, or none.
        action: what happens otherwise: `fail` publishes nothing, `warn` reports it,
            `quarantine` also writes the answers to a file.
    """

    name: str
    query: str
    wants_some: bool = False
    action: Literal["fail", "warn", "quarantine"] = "fail"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The source of change events, and where their effects go.

    Attributes:
        format: of Structured Streaming, such as `json`, `parquet` or `kafka`.
        options: of that format.
        events: the format of a column `value`: `json` or `csv`.
        schema: of the columns, if the format requires it.
        trigger: `once` for the events available now, or the seconds between batches.
        app_id: the name under which batches are numbered in the state.
    """

    format: str
    feed: str
    dead_letters: str
    checkpoint: str
    path: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    events: str = "json"
    schema: str | None = None
    trigger: str | float = "once"
    app_id: str = "stream"


@dataclass(frozen=True, slots=True)
class Config:
    """A whole pipeline.

    Attributes:
        allow_paths: where rules may include and import files, besides their folders.
        state: a path or URI where every version is kept; None keeps nothing.
        state_options: storage options, as in `deltalake`.
    """

    file: Path
    name: str
    rules: tuple[Path, ...] = ()
    ontologies: tuple[Path, ...] = ()
    text: str = ""
    allow_paths: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    engine: EngineSettings = field(default_factory=EngineSettings)
    state: str | None = None
    state_options: tuple[tuple[str, str], ...] = ()
    outputs: tuple[Output, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    rejected: str = ""
    reports: str = ""
    stream: StreamSettings | None = None


# ---------------------------------------------------------------------------- sections

# Tables of a configuration, read entry by entry.
#
# Problems are recorded and reading continues, so that all of them are reported at once.

T = TypeVar("T")

_NAMES: dict[type, str] = {
    str: "a text", int: "a whole number", bool: "true or false",
    dict: "a table", list: "a list", float: "a number",
}  # fmt: skip


class WrittenFloat(float):
    """A number of a configuration that remembers how it was written.

    A bound of `0.1` is exactly a tenth, which no float is.
    """

    def __new__(cls, text: str) -> Self:
        """Read a number with a point or an exponent."""
        number = super().__new__(cls, text)
        number.exact = Decimal(text)
        return number

    exact: Decimal


@dataclass(slots=True)
class Problems:
    """All problems of a configuration."""

    places: Places
    found: list[ConfigError] = field(default_factory=list)

    def add(
        self, route: Route, message: str, *, remark: str = "", advice: str | None = None
    ) -> None:
        """Record a problem at an entry."""
        label = self.places.label(route, remark)
        self.found.append(ConfigError(message, labels=(label,), help=advice))


class Section:
    """A table of the configuration."""

    def __init__(
        self, content: dict[str, Any], route: Route, problems: Problems
    ) -> None:
        self._content = content
        self.route = route
        self.problems = problems
        self._asked: list[str] = []

    @property
    def name(self) -> str:
        """The name in messages: `source 2`."""
        words = [str(s + 1) if isinstance(s, int) else s for s in self.route]
        return " ".join(words) or "the configuration"

    @property
    def keys(self) -> list[str]:
        """The existing entries."""
        return list(self._content)

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def problem(self, key: str, message: str, advice: str | None = None) -> None:
        """Record a problem with an entry."""
        self.problems.add((*self.route, key), message, advice=advice)

    # ------------------------------------------------------------------- entries

    def get(self, key: str, kind: type[T], default: T) -> T:
        """Return an entry of a type, or the default."""
        self._asked.append(key)
        value = self._content.get(key, default)
        if value is default:
            return default
        # In Python True is an int, but not in a configuration.
        fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        if not fits:
            self.wrong_type(key, _NAMES[kind])
            return default
        return cast("T", value)

    def any(self, key: str) -> Any:  # noqa: ANN401  whatever stands there
        """Return an entry of any type, None if it is missing."""
        self._asked.append(key)
        return self._content.get(key)

    def wrong_type(self, key: str, expected: str) -> None:
        """Note that an entry is not what it should be."""
        self.problem(key, f"`{key}` of {self.name} is not {expected}")

    def text(self, key: str, default: str = "") -> str:
        """Return a string."""
        return self.get(key, str, default)

    def optional_text(self, key: str) -> str | None:
        """Return a string, or None."""
        return self.text(key) or None

    def required_text(self, key: str, advice: str | None = None) -> str:
        """Return a required string."""
        if key not in self._content:
            self._asked.append(key)
            self.problems.add(self.route, f"{self.name} has no `{key}`", advice=advice)
            return ""
        return self.text(key)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a Boolean."""
        return self.get(key, bool, default)

    def number(self, key: str) -> int | None:
        """Return a whole number, or None."""
        missing = object()
        value = self.get(key, int, cast("int", missing))
        return None if value is missing else value

    def texts(self, key: str) -> list[str]:
        """Return a string or a list of strings, as a list."""
        self._asked.append(key)
        value = self._content.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(t, str) for t in listed):
            self.wrong_type(key, "a text or a list of texts")
            return []
        return list(listed)

    def choice(self, key: str, choices: Sequence[T], default: T) -> T:
        """Return one of some words."""
        value = self.get(key, str, cast("str", default))
        if value not in choices:
            self.problem(
                key,
                f"`{key}` of {self.name} cannot be `{value}`",
                advice_for(value, [str(each) for each in choices]),
            )
            return default
        return cast("T", value)

    # -------------------------------------------------------------------- tables

    def table(self, key: str) -> Section:
        """Return a table, an empty one if it does not exist."""
        content = self.get(key, dict, {})
        return Section(content, (*self.route, key), self.problems)

    def tables(self, key: str) -> list[Section]:
        """Return a list of tables."""
        found = self.any(key)
        if found is None:
            return []
        is_list = isinstance(found, list)
        if not is_list or not all(isinstance(each, dict) for each in found):
            self.problem(
                key,
                f"`{key}` is not a list of tables",
                f"write [[{key}]] on a line of its own, and its contents below",
            )
            return []
        return [
            Section(each, (*self.route, key, at), self.problems)
            for at, each in enumerate(found)
        ]

    def finish(self) -> None:
        """Record every entry that was not read."""
        for key in self._content:
            if key not in self._asked:
                self.problem(
                    key,
                    f"{self.name} has an unknown entry `{key}`",
                    advice_for(key, sorted(set(self._asked))),
                )


def advice_for(word: str, known: Sequence[str]) -> str:
    """Return advice with the most similar word, or all known ones."""
    near = get_close_matches(word, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"use one of {', '.join(f'`{each}`' for each in known)}"
