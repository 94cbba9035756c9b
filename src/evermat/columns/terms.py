"""Term columns: constants as Arrow structs of a kind and a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TERM = pa.struct([("kind", pa.uint8()), ("text", pa.string())])
"""The type of a term column."""


def terms_of_kind(kind: Kind, texts: pa.Array) -> pa.Array:
    """A term column of one kind; the texts must be canonical for it."""
    kinds = pa.repeat(pa.scalar(int(kind), pa.uint8()), len(texts))
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def kinds_in(terms: pa.Array) -> set[Kind]:
    """The kinds that occur in a term column."""
    return {Kind(number) for number in terms.field(0).unique().to_pylist()}


def by_kind(
    terms: pa.Array, convert: Mapping[Kind, Callable[[pa.Array], pa.Array]]
) -> pa.Array:
    """Convert the texts of each kind with the kind's own function, order kept."""
    kinds, texts = terms.field(0), terms.field(1)
    present = sorted(kinds_in(terms))
    if len(present) <= 1:
        return convert[present[0]](texts) if present else texts
    places = [pc.indices_nonzero(pc.equal(kinds, int(kind))) for kind in present]
    pieces = [
        convert[kind](texts.take(rows))
        for kind, rows in zip(present, places, strict=True)
    ]
    return reassembled(places, pieces)


def reassembled(places: list[pa.Array], pieces: list[pa.Array]) -> pa.Array:
    """One array of pieces, each of which says in which rows its values belong."""
    back = pc.sort_indices(pa.concat_arrays(places))
    return pa.concat_arrays(pieces).take(back)


def single(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def halves(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """What stands before and after the NUL of TYPED and LANGUAGE texts."""
    parts = pc.extract_regex(texts, r"(?s)^(?P<before>[^\x00]*)\x00(?P<after>.*)$")
    return parts.field(0), parts.field(1)
