"""Constants that RDF can represent: IRIs without blanks, language tags and so on.

A program or its data may contain other constants. An unreadable file is worse than an
error, so constants are checked before anything is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import kinds_in
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_IN_IRIS = bytes(range(0x21)) + b'<>"{}|^`\\'
_NOT_IN_LABELS = _NOT_IN_IRIS + b"!#$%&'()*+,/;=?@[]~\x7f"
_UNWANTED: Mapping[Kind, bytes] = {Kind.IRI: _NOT_IN_IRIS, Kind.BLANK: _NOT_IN_LABELS}
_WANTED: Mapping[Kind, str] = {
    Kind.TYPED: r'^[^\x00-\x20<>"{}|^`\\]+\x00',
    Kind.LANGUAGE: r"^[a-z]+(-[a-z0-9]+)*(--(ltr|rtl))?\x00",
}


def misspelt_row(terms: pa.Array) -> int | None:
    """Return the first row of a column of terms that cannot be written, or None."""
    kinds = kinds_in(terms)
    found = [
        row
        for kind in kinds & {*_UNWANTED, *_WANTED}
        if (row := _misspelt(terms, kind, is_only=len(kinds) == 1)) is not None
    ]
    return min(found, default=None)


def _misspelt(terms: pa.Array, kind: Kind, *, is_only: bool) -> int | None:
    texts = terms.field(1)
    is_kind = pc.equal(terms.field(0), int(kind))
    chosen = texts if is_only else texts.filter(is_kind)
    if kind in _UNWANTED:
        if not _has_any(chosen, _UNWANTED[kind]):
            return None
        each = (chosen.slice(at, 1) for at in range(len(chosen)))
        wrong = pa.array(_has_any(one, _UNWANTED[kind]) for one in each)
    else:
        wrong = pc.invert(pc.match_substring_regex(chosen, _WANTED[kind]))
    at = pc.index(wrong, value=True).as_py()
    if at < 0:
        return None
    return int(at) if is_only else int(pc.indices_nonzero(is_kind)[at].as_py())


def _has_any(texts: pa.Array, characters: bytes) -> bool:
    """Return whether any string has one of some characters."""
    ends = pa.array([0, len(texts)], pa.int32())
    together = pc.binary_join(pa.ListArray.from_arrays(ends, texts), "")
    data = together[0].as_buffer().to_pybytes()
    return len(data.translate(None, characters)) < len(data)
