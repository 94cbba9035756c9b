"""What a configuration says: the parts of a pipeline, checked and with full paths.

All of it is plain data that Spark can carry to its workers.
`evermat.pipeline.config_file` makes these objects from a TOML file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.kb.equality_modes import Equality

Format = Literal[
    "parquet", "csv", "tsv", "json", "jdbc", "table", "nt", "nq", "ttl", "trig", "rdf"
]
FORMATS: tuple[Format, ...] = (
    "parquet", "csv", "tsv", "json", "jdbc", "table", "nt", "nq", "ttl", "trig", "rdf",
)  # fmt: skip
RDF_FORMATS = frozenset({"nt", "nq", "ttl", "trig", "rdf"})
LINE_FORMATS = frozenset({"csv", "tsv", "json", "nt", "nq"})
DATABASE_FORMATS = frozenset({"jdbc", "table"})

Bound = str | int | Decimal


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source: its type, and what its values must be like.

    Attributes:
        type: a name of `evermat.pipeline.conversions.TYPES`; None takes values as
            they come, and those of text files as strings.
        required: whether a row without a value is wrong; otherwise the facts that
            would use it are left out.
        pattern: a regular expression for the whole text.
        minimum, maximum: bounds, both inclusive; numbers are exactly as written.
        one_of: the only values that there may be.
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
    """What an argument of a fact is made of.

    Attributes:
        kind: `column`, `iri` or `text` (templates with columns in braces), or `value`.
        text: the column, the template, or the text of the constant.
        value_kind: the kind of a constant, a number of `evermat.values.Kind`.
        language: makes a text a string in that language.
    """

    kind: Literal["column", "iri", "text", "value"]
    text: str
    value_kind: int = 0
    language: str | None = None


@dataclass(frozen=True, slots=True)
class FactMap:
    """How a row becomes a fact; without arguments, all columns are the arguments.

    Attributes:
        declared: the names that the rules declare for the columns of the predicate.
            Without arguments, the columns of the source go there by name.
    """

    predicate: str
    arguments: tuple[Argument, ...] = ()
    declared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows may be rejected: so many, or a share of all rows."""

    rows: int | None = 0
    share: float | None = None

    def allows(self, rejected: int, rows: int) -> bool:
        """Whether so many of the rows may be wrong."""
        if self.share is not None:
            return rejected <= self.share * rows
        return self.rows is None or rejected <= self.rows

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share * 100:g}%"
        return "all" if self.rows is None else f"{self.rows:,}"


@dataclass(frozen=True, slots=True)
class Database:
    """A table of Spark, or a table or query that is read through JDBC.

    Attributes:
        password_variable: the environment variable that holds the password.
        partition_column, lower, upper, partitions: read in so many pieces at once,
            cut between these values of a numeric column.
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


@dataclass(frozen=True, slots=True)
class Source:
    """Rows from outside, and the facts they become.

    Attributes:
        paths: files, folders or patterns, as absolute paths or URIs.
        insert, delete: where `update` finds rows that came and left; without them an
            update compares the whole source with what it gave before.
        header: whether text files begin with the names of their columns.
        multiline: whether quoted texts may go over lines; files are not split then.
        base: what relative IRIs in RDF are relative to.
        folder: that of the configuration; files are called by their path from there.
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
        """The predicates that this source gives facts to."""
        return tuple(dict.fromkeys(each.predicate for each in self.facts))


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which engine, and how Spark is to be started."""

    name: str = "spark"
    master: str | None = None
    algorithm: str = "auto"
    equality: Equality = "auto"
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go.

    Attributes:
        predicates: what is written, each to a place of its own; or
        query: a question whose answers are written.
        path: a folder; `{predicate}` stands for the name of the predicate.
        table: a table of Spark instead of a folder.
        mode: `full` writes everything each time, `changes` adds what came and left.
    """

    name: str
    predicates: tuple[str, ...] = ()
    query: str | None = None
    format: Literal["parquet", "csv", "tsv", "nt", "table"] = "parquet"
    path: str | None = None
    table: str | None = None
    mode: Literal["full", "changes"] = "full"


def output_place(output: Output, what: str) -> str:
    """The folder or table for a predicate, or for the answers of a query.

    A predicate may be an IRI, which is made a name of a folder or table.
    """
    pattern = output.table if output.format == "table" else output.path
    word = as_word(what, otherwise="facts")
    return (pattern or "").replace("{predicate}", word)


def as_word(text: str, *, otherwise: str) -> str:
    """A text such as an IRI as a name of letters, digits, dots and dashes."""
    word = re.sub(r"[^\w.\-]+", "_", text).strip("_") or otherwise
    # `.` and `..` are folders of their own, and names with a dot first are hidden.
    return re.sub(r"^\.+", "_", word)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Where change events come from, and where their effects go.

    Attributes:
        format: of Structured Streaming, such as `json`, `parquet` or `kafka`.
        options: of that format.
        events: what is in a column `value`: `json` or `csv`.
        schema: of the columns, where the format needs to be told.
        trigger: `once` for what there is now, or the seconds between batches.
        app_id: under which batches are numbered in the state.
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
        state_options: how to get there, as `deltalake` takes them.
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
    rejected: str = ""
    reports: str = ""
    stream: StreamSettings | None = None
