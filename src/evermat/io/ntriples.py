"""Facts as N-Triples."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import (
    as_parts,
    kinds_in,
    ntriples_texts,
    term_texts,
    terms_of_kind,
)
from evermat.errors import EvermatError
from evermat.io.lines import ROWS_AT_ONCE, text_block
from evermat.io.rdf_spelling import misspelt_row
from evermat.lang.terms import RDF_TYPE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.columns import TableParts

_TRIPLE = 3


class NotTriplesError(EvermatError, ValueError):
    """Rows that are not RDF triples."""

    code = "EM721"


_NAMES = {"subject": {Kind.IRI, Kind.BLANK}, "predicate": {Kind.IRI}}
"""Where no literal may stand, and what may."""

_OTHER_FORMAT = "write `.csv` or `.parquet` instead"
_WITHOUT_LITERALS = (
    "ask for `[?s, ?p, ?o], datatype(?s) = rdfs:Resource` to leave out what is said of "
    f"literals, or {_OTHER_FORMAT}"
)


def ntriples_blocks(
    rows: pa.Table | TableParts, predicate: str = ""
) -> Iterator[pa.Buffer]:
    """The rows of term columns as lines of N-Triples, in blocks of many lines.

    Three columns are subject, predicate and object. A fact `p(a, b)` becomes
    `a p b`, and `p(a)` becomes `a rdf:type p`; a predicate name that is no IRI is
    written `urn:name`.

    Raises:
        NotTriplesError: more than three columns, a literal where none may stand, or
            a constant that RDF cannot hold.
    """
    parts = as_parts(rows)
    width = len(parts.column_names)
    if not 1 <= width <= _TRIPLE:
        raise NotTriplesError(
            f"rows with {width} columns are not triples",
            help=_OTHER_FORMAT,
        )
    advice = _OTHER_FORMAT if width < _TRIPLE else _WITHOUT_LITERALS
    row = 1
    batches = (part.to_batches(max_chunksize=ROWS_AT_ONCE) for part in parts)
    for batch in chain.from_iterable(batches):
        columns = _triple_columns(batch.columns, predicate)
        for column, place in zip(columns, _NAMES, strict=False):
            _require_kinds(column, place, first_row=row, advice=advice)
        _require_spelling(columns, first_row=row)
        texts = [ntriples_texts(column) for column in columns]
        yield text_block(texts, between=" ", end=" .\n")
        row += batch.num_rows


def _require_spelling(columns: list[pa.Array], *, first_row: int) -> None:
    for column in columns:
        row = misspelt_row(column)
        if row is not None:
            text = term_texts(column.slice(row, 1))[0].as_py()
            raise NotTriplesError(
                f"row {first_row + row} has {text!r}, which RDF cannot hold",
                law="an IRI has no blanks, quotes, brackets or backslashes; labels of "
                "blank nodes and tags of languages have letters and digits",
                help=f"correct the data, or {_OTHER_FORMAT}",
            )


def _triple_columns(columns: list[pa.Array], predicate: str) -> list[pa.Array]:
    if len(columns) == _TRIPLE:
        return columns
    length = len(columns[0])
    name = _repeated(predicate if ":" in predicate else f"urn:{predicate}", length)
    if len(columns) == 1:
        return [columns[0], _repeated(RDF_TYPE.text, length), name]
    return [columns[0], name, columns[1]]


def _repeated(iri: str, length: int) -> pa.Array:
    return terms_of_kind(Kind.IRI, pa.repeat(pa.scalar(iri), length))


def _require_kinds(terms: pa.Array, place: str, *, first_row: int, advice: str) -> None:
    allowed = _NAMES[place]
    if kinds_in(terms) <= allowed:
        return
    numbers = pa.array([int(kind) for kind in allowed], pa.uint8())
    row = pc.index(pc.is_in(terms.field(0), value_set=numbers), value=False).as_py()
    text = term_texts(terms.slice(row, 1))[0].as_py()
    what = " or blank node" if Kind.BLANK in allowed else ""
    raise NotTriplesError(
        f"row {first_row + row} has {text} as its {place}",
        law=f"the {place} of a triple is an IRI{what}",
        help=advice,
    )
