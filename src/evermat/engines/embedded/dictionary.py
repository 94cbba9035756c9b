"""A dictionary that encodes constants as 32-bit ids.

Integers between -2**30 and 2**30 are encoded in the id itself (the top bit is set), so
arithmetic and comparison on them need no dictionary; their ids are in the order of the
integers. Every other constant is a string with a kind, stored once in one long buffer,
and its id is a sequence number.

`RememberedIds` caches the ids of long sequences of constants.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import TERM, as_terms
from evermat.engines.embedded.kernels import strings as kernels_strings
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evermat.engines.embedded.arrays import Flags, Ids
    from evermat.engines.embedded.mapped_file import ArrayWriter, MappedArrays


INTEGER_ZERO = 0xC000_0000
"""The id of the integer 0."""
FIRST_INTEGER = 0x8000_0000
"""The smallest id that encodes an integer."""
SMALLEST = -(1 << 30)
LARGEST = (1 << 30) - 2
"""The largest integer encoded in an id; the id after it is UNKNOWN."""
UNKNOWN = 0xFFFF_FFFF
"""The result of look-ups for a constant that is not in the dictionary."""

_SLACK = 8
"""Spare capacity: one byte in this many."""

_SHORT = 11
"""Digits, including the sign, up to which a string is parsed as a 64-bit integer."""

_ADD, _FIND = 1, 0

_LONGEST = 2**31 - 1
"""Largest number of bytes in a string column with 32-bit offsets."""

_FIELDS = list(TERM)

_STRINGS = np.array([Kind.STRING], np.uint8)

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_T = TypeVar("_T", bound=np.generic)


class Dictionary:
    """Maps constants to ids, and ids to constants."""

    def __init__(self) -> None:
        self._count = 0
        self._texts = np.empty(1 << 12, np.uint8)
        self._ends = np.zeros(1 << 8, np.int64)
        self._kinds = np.empty(1 << 8, np.uint8)
        self._slots = np.full(1 << 9, kernels_strings.EMPTY, np.uint64)
        self._known: dict[Constant, int] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return self._count

    def recover(self) -> None:
        """Make the dictionary usable again after an interrupted operation.

        The lock may still be held. The stored constants are complete: a constant counts
        only when all of its data has been written.
        """
        self._lock = Lock()

    # ----------------------------------------------------------------------- files

    def write(self, file: ArrayWriter) -> None:
        """Write all constants to a file."""
        length = int(self._ends[self._count])
        file.values["constants"] = self._count
        file.put("texts", self._texts[:length], length + length // _SLACK)
        room = self._count + 1 + self._count // _SLACK
        file.put("ends", self._ends[: self._count + 1], room)
        file.put("kinds", self._kinds[: self._count], room)
        file.put("slots", self._slots)

    def take_up(self, file: MappedArrays) -> None:
        """Map the constants of a file into a dictionary that has none."""
        self._texts, self._ends = file.get("texts"), file.get("ends")
        self._kinds, self._slots = file.get("kinds"), file.get("slots")
        self._count = file.values["constants"]
        self._known = {}

    # ------------------------------------------------------------ constants to ids

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Ids:
        """Return the ids of a column of constants; new constants are added."""
        return self._translate(column, _ADD)

    def look_up(self, column: pa.Array | pa.ChunkedArray) -> Ids:
        """Return the ids of a column of constants, UNKNOWN for those without an id."""
        return self._translate(column, _FIND)

    def encode_all(self, columns: Sequence[pa.ChunkedArray]) -> Ids:
        """Return the ids of columns, one after the other; new constants are added."""
        return self._translate_all(columns, _ADD)

    def look_up_all(self, columns: Sequence[pa.ChunkedArray]) -> Ids:
        """Return the ids of columns, one after the other, or UNKNOWN."""
        return self._translate_all(columns, _FIND)

    def encode_constants(self, constants: Sequence[Constant]) -> Ids:
        """Return the ids of individual constants."""
        return self.encode(_term_column(constants))

    def remember(self, constants: Iterable[Constant]) -> None:
        """Add constants in one batch, before `id_of` is called for each of them."""
        new = [each for each in dict.fromkeys(constants) if each not in self._known]
        if new:
            ids = self.encode_constants(new).tolist()
            self._known.update(zip(new, ids, strict=True))

    def id_of(self, constant: Constant) -> int:
        """Return the id of a constant of a program; cached."""
        id_ = self._known.get(constant)
        if id_ is None:
            id_ = self._known[constant] = int(self.encode_constants([constant])[0])
        return id_

    def encode_numbers(self, numbers: Numbers) -> Ids:
        """Return the ids of 64-bit integers or of doubles."""
        if numbers.dtype == np.float64:
            return self.encode(pa.array(numbers))
        return self._translate_integers(numbers, _ADD)

    def _translate_all(self, columns: Sequence[pa.ChunkedArray], mode: int) -> Ids:
        """Translate columns, in one batch if all of them are strings."""
        chunks = [
            column.chunk(at) for column in columns for at in range(column.num_chunks)
        ]
        if chunks and all(isinstance(chunk, pa.StringArray) for chunk in chunks):
            together = pa.concat_arrays(chunks)
            if not together.null_count:
                return self._intern(together, _STRINGS, mode)
        return np.concatenate([self._translate(column, mode) for column in columns])

    def _translate(self, column: pa.Array | pa.ChunkedArray, mode: int) -> Ids:
        if isinstance(column, pa.ChunkedArray):
            parts = [self._translate(chunk, mode) for chunk in column.chunks]
            if len(parts) == 1:
                return parts[0]
            return np.concatenate(parts) if parts else np.empty(0, np.uint32)
        # The two most frequent types of columns need no conversion to terms.
        if column.null_count == 0:
            if pa.types.is_int64(column.type) or pa.types.is_int32(column.type):
                return self._translate_integers(column.to_numpy(), mode)
            if pa.types.is_string(column.type):
                return self._intern(column, _STRINGS, mode)
        terms = as_terms(column)
        kinds = terms.field("kind").to_numpy(zero_copy_only=False)
        return self._translate_terms(terms.field("text"), kinds, mode)

    def _translate_integers(self, numbers: Numbers, mode: int) -> Ids:
        numbers = numbers.astype(np.int64, copy=False)
        ids = (numbers + INTEGER_ZERO).astype(np.uint32)
        large = (numbers < SMALLEST) | (numbers > LARGEST)
        if large.any():
            texts = pa.array(numbers[large]).cast(pa.string())
            ids[large] = self._intern(texts, np.array([Kind.INTEGER], np.uint8), mode)
        return ids

    def _translate_terms(self, texts: pa.Array, kinds: Flags, mode: int) -> Ids:
        integers = kinds == Kind.INTEGER
        if not integers.any():
            return self._intern(texts, kinds, mode)
        lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
        integers &= lengths <= _SHORT
        ids = np.empty(len(kinds), np.uint32)
        numbers = texts.filter(pa.array(integers)).cast(pa.int64())
        ids[integers] = self._translate_integers(numbers.to_numpy(), mode)
        others = ~integers
        if others.any():
            rest = texts.filter(pa.array(others))
            ids[others] = self._intern(rest, kinds[others], mode)
        return ids

    def _intern(self, texts: pa.Array, kinds: Flags, mode: int) -> Ids:
        """Return the ids of strings; `kinds` has one entry for each, or one for all."""
        count = len(texts)
        ids = np.empty(count, np.uint32)
        if count == 0:
            return ids
        _, offsets, data = texts.buffers()
        width = np.int32 if pa.types.is_string(texts.type) else np.int64
        stops = np.frombuffer(offsets, width)[texts.offset : texts.offset + count + 1]
        ends = stops.astype(np.int64, copy=False)
        raw = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        # Cores that evaluate rules together share the dictionary.
        with self._lock:
            if mode == _ADD:
                self._reserve(count, int(ends[-1] - ends[0]))
            self._count = kernels_strings.intern_texts(
                raw,
                ends,
                kinds,
                self._texts,
                self._ends,
                self._kinds,
                self._slots,
                self._count,
                mode,
                ids,
            )
        return ids

    def _reserve(self, count: int, length: int) -> None:
        """Reserve capacity for `count` more strings of `length` bytes in all."""
        entries = self._count + count
        if entries + 1 > self._ends.size:
            room = max(entries + 1, 2 * self._ends.size)
            # Both or none: an allocation may fail.
            self._ends, self._kinds = (
                _grown(self._ends, room),
                _grown(self._kinds, room),
            )
        used = int(self._ends[self._count])
        if used + length > self._texts.size:
            self._texts = _grown(self._texts, max(used + length, 2 * self._texts.size))
        if 3 * entries > 2 * self._slots.size:
            slots = np.empty(1 << (3 * entries // 2).bit_length(), np.uint64)
            kernels_strings.rebuild_slots(
                self._texts, self._ends, self._kinds, self._count, slots
            )
            self._slots = slots

    # ------------------------------------------------------------ ids to constants

    def decode(self, ids: Ids) -> pa.Array:
        """Return the constants of ids, as a column of terms."""
        integers = ids >= FIRST_INTEGER
        if not integers.any():
            kinds, texts = self._kinds[ids], self._texts_of(ids)
        elif integers.all():
            kinds = np.full(len(ids), Kind.INTEGER, np.uint8)
            texts = pa.array(_integers(ids)).cast(pa.string())
        else:
            kinds = self.kinds_of(ids)
            numbers = pa.array(_integers(ids)).cast(pa.string())
            texts = self._texts_of(np.where(integers, 0, ids))
            texts = pc.if_else(pa.array(integers), numbers, texts)
        return pa.StructArray.from_arrays([pa.array(kinds), texts], fields=_FIELDS)

    def numbers(self, ids: Ids) -> Numbers | None:
        """Return the numbers of ids that are all small integers, or all doubles."""
        if not ids.size or ids.min() >= FIRST_INTEGER:
            return _integers(ids)
        if ids.max() < FIRST_INTEGER and (self._kinds[ids] == Kind.DOUBLE).all():
            column = self._texts_of(ids).cast(pa.float64())
            doubles: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
            return doubles
        return None

    def large_integers(self, ids: Ids) -> npt.NDArray[np.int64] | None:
        """Return the numbers of ids, if all are 64-bit integers."""
        if not (self.kinds_of(ids) == Kind.INTEGER).all():
            return None
        try:
            column = self.decode(ids).field("text").cast(pa.int64())
        except pa.ArrowInvalid:
            return None
        numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
        return numbers

    def look_up_sums(self, left: Ids, right: Ids, sign: int) -> Ids:
        """Return the ids of `left + sign * right`, where both sides encode integers."""
        return self._translate_integers(
            _integers(left) + sign * _integers(right), _FIND
        )

    def constant(self, id_: int) -> Constant:
        """Return the constant of one id."""
        if id_ >= FIRST_INTEGER:
            return Constant(Kind.INTEGER, str(id_ - INTEGER_ZERO))
        text = self._texts[self._ends[id_] : self._ends[id_ + 1]].tobytes()
        return Constant(Kind(self._kinds[id_]), text.decode())

    def kinds_of(self, ids: Ids) -> Flags:
        """Return the kind of each id."""
        integers = ids >= FIRST_INTEGER
        kinds = np.full(len(ids), Kind.INTEGER, np.uint8)
        kinds[~integers] = self._kinds[ids[~integers]]
        return kinds

    @property
    def kinds(self) -> Flags:
        """The kind of every string, with spare capacity at the end."""
        return self._kinds

    @property
    def texts(self) -> tuple[Flags, npt.NDArray[np.int64]]:
        """The buffer of all strings, and their boundaries.

        Both are replaced by other arrays when constants are added.
        """
        return self._texts, self._ends

    def _texts_of(self, ids: Ids) -> pa.Array:
        if self._count == 0:
            return pa.array([""] * len(ids), pa.string())
        ids = np.ascontiguousarray(ids)
        places: npt.NDArray[np.int64] = np.empty(len(ids) + 1, np.int64)
        length = kernels_strings.measure_texts(ids, self._ends, places)
        texts = np.empty(length, np.uint8)
        kernels_strings.copy_texts(ids, self._texts, self._ends, places, texts)
        if length > _LONGEST:
            buffers = pa.py_buffer(places), pa.py_buffer(texts)
            return pa.LargeStringArray.from_buffers(len(ids), *buffers).cast(
                pa.string()
            )
        buffers = pa.py_buffer(places.astype(np.int32)), pa.py_buffer(texts)
        return pa.StringArray.from_buffers(len(ids), *buffers)


def are_integers(ids: Ids) -> npt.NDArray[np.bool_]:
    """Return which of the ids encode integers."""
    return ids >= FIRST_INTEGER


def _integers(ids: Ids) -> npt.NDArray[np.int64]:
    return ids.astype(np.int64) - INTEGER_ZERO


def _term_column(constants: Sequence[Constant]) -> pa.Array:
    kinds = pa.array([int(constant.kind) for constant in constants], pa.uint8())
    texts = pa.array([constant.text for constant in constants], pa.string())
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def _grown(array: npt.NDArray[_T], size: int) -> npt.NDArray[_T]:
    larger = np.empty(size, array.dtype)
    larger[: array.size] = array
    return larger


Encoded = TypeVar("Encoded")

FEW_CONSTANTS = 64
"""Sequences of up to this many constants are looked up each time."""

MOST_SEQUENCES = 8
"""Number of sequences in the cache, such as the constants of all rules."""


class RememberedIds(Generic[Encoded]):
    """A cache of ids, keyed by the identity of a sequence of constants.

    Args:
        encode: looks ids up.
    """

    def __init__(self, encode: Callable[[Sequence[Constant]], Encoded]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[Sequence[Constant], Encoded]] = {}

    def of(self, constants: Sequence[Constant]) -> Encoded:
        """Return the ids of constants, in order."""
        known = self._known.get(id(constants))
        if known is not None:
            return known[1]
        ids = self._encode(constants)
        if len(constants) > FEW_CONSTANTS:
            if len(self._known) >= MOST_SEQUENCES:
                self._known.clear()
            # The sequence is kept alive, so that no other object can have its address.
            self._known[id(constants)] = (constants, ids)
        return ids
