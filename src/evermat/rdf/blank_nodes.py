"""Names for blank nodes, which are local to a file, that keep files apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import TERM
from evermat.values import Kind


class Renaming(Protocol):
    """Gives the blank nodes of a term column other labels."""

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms, with blank nodes renamed."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Leaves labels as they are."""

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms themselves."""
        return terms


@dataclass(frozen=True, slots=True)
class Labelled:
    """Puts a scope before each label, for files in which every node has one."""

    scope: str

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms, with blank nodes `_:x` renamed to `_:scope_x`."""
        kinds, texts = terms.field(0), terms.field(1)
        is_blank = pc.equal(kinds, int(Kind.BLANK))
        if not pc.any(is_blank, min_count=0).as_py():
            return terms
        scoped = pc.binary_join_element_wise(self.scope, texts, "_")
        return _rebuilt(kinds, pc.if_else(is_blank, scoped, texts))


@dataclass(frozen=True, slots=True)
class Numbered:
    """Numbers nodes in the order of the file.

    A parser gives nodes without a label a new random one each time it reads the file;
    numbers are the same each time.
    """

    scope: str
    numbers: dict[str, int] = field(default_factory=dict)

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms, with the n-th blank node of the file renamed to `_:scope_n`."""
        kinds, texts = terms.field(0), terms.field(1)
        is_blank = pc.equal(kinds, int(Kind.BLANK))
        if not pc.any(is_blank, min_count=0).as_py():
            return terms
        encoded = texts.filter(is_blank).dictionary_encode()
        known = self.numbers
        renamed = [
            f"{self.scope}_{known.setdefault(label, len(known) + 1)}"
            for label in encoded.dictionary.to_pylist()
        ]
        new = pa.array(renamed, pa.string()).take(encoded.indices)
        return _rebuilt(kinds, pc.replace_with_mask(texts, is_blank, new))


def _rebuilt(kinds: pa.Array, texts: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
