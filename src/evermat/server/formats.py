"""JSON, CSV, Arrow and RDF as formats of facts in requests and answers.

In JSON, strings, whole numbers, floating-point numbers and Booleans represent
themselves. All other constants are objects:

| constant        | in JSON                                          |
| --------------- | ------------------------------------------------ |
| IRI             | `{"iri": "http://example.org/a"}`                |
| blank node      | `{"blank": "b0"}`                                |
| with a datatype | `{"value": "4.20", "datatype": "http://…#decimal"}` |
| with a language | `{"value": "chat", "language": "fr"}`            |
"""

from __future__ import annotations

import datetime
import math
import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pyarrow.csv
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt
from pydantic import StrictStr as Text

from evermat.errors import EvermatError
from evermat.kb.inputs import read_fact_file
from evermat.server.errors import (
    BadRequestError,
    BodyContentError,
    MediaTypeError,
    NotAcceptableError,
)
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    Constant,
    LangString,
    TypedLiteral,
    constant,
    language_string,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.lang.catalogue import Predicate
    from evermat.results.result import Result
    from evermat.values import Value

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"

# ------------------------------------------------------------------------ JSON values


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Iri(_Object):
    """An IRI."""

    iri: str = Field(min_length=1)

    def constant(self) -> Constant:
        """Return the constant."""
        return constant(IRI(self.iri))


class Blank(_Object):
    """A blank node."""

    blank: str = Field(min_length=1, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")

    def constant(self) -> Constant:
        """Return the constant."""
        return constant(BlankNode(self.blank))


class Literal(_Object):
    """A literal with a datatype or a language, or a plain string."""

    value: str
    datatype: str | None = None
    language: str | None = Field(default=None, pattern=r"^[A-Za-z]+(-[A-Za-z0-9]+)*$")

    def constant(self) -> Constant:
        """Return the constant."""
        if self.language is not None:
            if self.datatype is not None:
                raise BadRequestError("a literal has a datatype or a language")
            return language_string(self.value, self.language)
        if self.datatype is not None:
            return literal(self.value, self.datatype)
        return constant(self.value)


Cell = StrictBool | StrictInt | StrictFloat | Text | Iri | Blank | Literal
Row = list[Cell] | dict[str, Cell]
Rows = Annotated[
    list[Row],
    Field(description="Rows as lists of values, or by the declared names of columns."),
]


def python_rows(rows: Sequence[Any]) -> list[Any]:
    """Convert rows of a request to Python values."""
    return [
        {name: python_value(cell) for name, cell in row.items()}
        if isinstance(row, dict)
        else tuple(map(python_value, row))
        for row in rows
    ]


def python_value(cell: Any) -> Any:  # noqa: ANN401  any value of JSON
    """Convert a value of a request to a Python value."""
    return cell.constant() if isinstance(cell, Iri | Blank | Literal) else cell


def json_value(value: Value | None) -> object:
    """Convert a constant to a JSON value; None is an unbound variable of SPARQL."""
    match value:
        case datetime.date() | datetime.time():
            datatype, _, lexical = constant(value).text.partition("\0")
            return {"value": lexical, "datatype": datatype}
        case IRI(text=text):
            return {"iri": text}
        case BlankNode(label=label):
            return {"blank": label}
        case LangString(text=text, language=language):
            return {"value": text, "language": language}
        case TypedLiteral(lexical=lexical, datatype=datatype):
            return {"value": lexical, "datatype": datatype}
        case Decimal():
            return {"value": constant(value).text, "datatype": XSD + "decimal"}
        case float() if not math.isfinite(value):
            name = {"inf": "INF", "-inf": "-INF"}.get(repr(value), "NaN")
            return {"value": name, "datatype": XSD + "double"}
    return value


def json_rows(
    rows: Iterable[Sequence[Value | None]], *, terms: bool = False
) -> list[list[object]]:
    """Convert rows to JSON values, or every value to a term of the language."""
    if terms:
        return [
            [None if value is None else str(constant(value)) for value in row]
            for row in rows
        ]
    return [list(map(json_value, row)) for row in rows]


# ------------------------------------------------------------------------ negotiation


def chosen_type(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered type that an `Accept` header prefers.

    Raises:
        NotAcceptableError: it accepts none of them.
    """
    best, best_quality = "", 0.0
    for offer in offered:
        quality = _quality(accept or "*/*", offer)
        if quality > best_quality:
            best, best_quality = offer, quality
    if best:
        return best
    raise NotAcceptableError(
        f"there is no answer in the format `{accept}`",
        help=f"ask for one of {', '.join(offered)}",
    )


def _quality(accept: str, offer: str) -> float:
    """Return the quality of an offer; the most specific entry decides."""
    found = (-1, 0.0)
    for entry in accept.split(","):
        name, *options = (part.strip() for part in entry.split(";"))
        name = name.lower()
        quality = 1.0
        for option in options:
            if option.startswith("q="):
                try:
                    quality = float(option[2:])
                except ValueError:
                    quality = 0.0
        precision = ["*/*", f"{offer.partition('/')[0]}/*", offer]
        if name in precision:
            found = max(found, (precision.index(name), quality))
    return found[1]


# ------------------------------------------------------------------------ files


SUFFIXES = {
    CSV: ".csv",
    "text/tab-separated-values": ".tsv",
    ARROW: ".arrow",
    "application/vnd.apache.arrow.file": ".arrow",
    "application/vnd.apache.parquet": ".parquet",
    "text/turtle": ".ttl",
    "application/n-triples": ".nt",
    "application/n-quads": ".nq",
    "application/trig": ".trig",
    "application/rdf+xml": ".rdf",
}
"""Types of bodies with facts, and the suffixes of their files."""


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of a request's body, and their type."""

    data: bytes
    media_type: str

    def rows(
        self, name: str, known: Predicate | None, *, header: bool | None
    ) -> pa.Table:
        """Parse the facts of the body.

        Args:
            name: their predicate.
            known: its declaration.
            header: whether a text begins with names of columns.

        Raises:
            MediaTypeError: bodies of this type do not contain facts.
        """
        suffix = SUFFIXES.get(self.media_type)
        if suffix is None:
            raise MediaTypeError(
                f"facts cannot be read from a body of type `{self.media_type}`",
                help=f"send {JSON}, or one of {', '.join(SUFFIXES)}",
            )
        with TemporaryDirectory(prefix="evermat-body-") as folder:
            path = Path(folder, f"body{suffix}")
            path.write_bytes(self.data)
            try:
                return read_fact_file(path, known, header=header, name=name)
            except EvermatError as error:
                # The path of the temporary file is not for clients.
                text = str(error).replace(f"{folder}{os.sep}", "")
                raise BodyContentError(error, text) from None


def csv_bytes(result: Result) -> bytes:
    """Return rows as CSV, with the names of columns."""
    table = result.to_arrow()
    if not result.columns:
        return b"answer\n" + (b"yes\n" if len(result) else b"no\n")
    sink = pa.BufferOutputStream()
    plain = pa.table(
        [_plain(column) for column in table.columns], names=table.column_names
    )
    pyarrow.csv.write_csv(plain, sink)
    return bytes(sink.getvalue())


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that can be written as CSV."""
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column


def arrow_bytes(result: Result) -> bytes:
    """Return rows as an Arrow stream."""
    table = result.to_arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def rdf_bytes(result: Result, suffix: str) -> bytes:
    """Return triples in an RDF syntax."""
    with TemporaryDirectory(prefix="evermat-answer-") as folder:
        path = Path(folder, f"answer{suffix}")
        result.write(path)
        return path.read_bytes()


def in_pages(data: bytes, size: int = 1 << 16) -> Iterator[bytes]:
    """Yield bytes in pieces to be sent one after the other."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
