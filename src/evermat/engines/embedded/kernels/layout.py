"""Arrays of relations and indexes for compiled code, which knows their addresses only.

A relation and an index each have a short array of numbers, made once, whose own address
never changes. What the numbers say is brought up to date when it is next needed.

The places of the numbers are compiled into kernels; whoever changes one has all of them
compiled again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evermat.engines.embedded.runtime import (
    carray,
    int32,
    int64,
    intrinsic,
    part,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
    voidptr,
)

# ------------------------------------------------------------------------------- layout

Numbers = npt.NDArray[np.int64]

TABLE, ROOM, STATUS, COUNTERS = range(4)
PRIMARY, ARITY = COUNTERS + 2, COUNTERS + 3
"""A relation: addresses of its columns, its status and its two counters, which are 0
where there are none, and how many rows fit; the address of the index by which facts are
found, and how many columns there are."""

RUNS, ROOM_OF_LAST, FIRST_RUN = range(3)
"""An index: how many runs there are, how many keys fit into the last of them where it
is, and where the numbers of the first one begin."""

KEYS, ROWS, SIZE, DIRECTORY, BUCKETS, BASE, SHIFT, FILTER, MASK, ARITY_OF_RUN = range(
    10
)
"""A run: addresses, lengths, and what its directory and its filter are made for; see
`index.Run`."""

MOST_RUNS = 40
"""Each run is at most a third as long as the one before it, and their rows have 31
bits, so there are never so many."""


def relation_layout() -> Numbers:
    """Room to describe a relation."""
    return np.zeros(ARITY + 1, np.int64)


def index_layout() -> Numbers:
    """Room to describe an index."""
    return np.zeros(FIRST_RUN + ARITY_OF_RUN * MOST_RUNS, np.int64)


def address(array: npt.NDArray[np.generic]) -> int:
    """Where an array begins in memory."""
    return int(array.__array_interface__["data"][0])


# ------------------------------------------------------------------------------- access


def _reader(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Reads an element: by the address of the array, and its place."""

    @intrinsic
    def read(_context: Any, _address: Any, _at: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            start = builder.inttoptr(given[0], pointer)
            return builder.load(builder.gep(start, [given[1]]))

        return kind(int64, int64), generate

    return read


def _reader_anywhere(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Reads what begins at an address, which need not be aligned."""

    @intrinsic
    def read(_context: Any, _address: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            loaded = builder.load(builder.inttoptr(given[0], pointer))
            loaded.align = 1
            return loaded

        return kind(int64), generate

    return read


def _writer(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Writes an element: by the address of the array, and its place."""

    @intrinsic
    def write(_context: Any, _address: Any, _at: Any, _value: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            start = builder.inttoptr(given[0], pointer)
            builder.store(given[2], builder.gep(start, [given[1]]))
            return context.get_dummy_value()

        return void(int64, int64, kind), generate

    return write


def _writer_anywhere(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Write to an address, which need not be aligned."""

    @intrinsic
    def write(_context: Any, _address: Any, _value: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            stored = builder.store(given[1], builder.inttoptr(given[0], pointer))
            stored.align = 1
            return context.get_dummy_value()

        return void(int64, kind), generate

    return write


def _fetcher() -> Any:  # noqa: ANN401  Numba's types have none
    """Has the processor fetch what begins at an address, and does not wait for it."""

    @intrinsic
    def fetch(_context: Any, _address: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:  # noqa: ANN401
            from llvmlite.ir import (  # noqa: PLC0415  only where code is generated
                Constant,
                FunctionType,
                VoidType,
            )

            pointer = context.get_value_type(uint8).as_pointer()
            number = context.get_value_type(int32)
            function = builder.module.declare_intrinsic(
                "llvm.prefetch",
                [pointer],
                FunctionType(VoidType(), [pointer, number, number, number]),
            )
            to_read, keep, data = (Constant(number, each) for each in (0, 3, 1))
            start = builder.inttoptr(given[0], pointer)
            builder.call(function, [start, to_read, keep, data])
            return context.get_dummy_value()

        return void(int64), generate

    return fetch


def _pointer_maker() -> Any:  # noqa: ANN401  Numba's types have none
    """Takes a number for what it is."""

    @intrinsic
    def point(_context: Any, _address: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:  # noqa: ANN401
            return builder.inttoptr(given[0], context.get_value_type(voidptr))

        return voidptr(int64), generate

    return point


_pointer = _pointer_maker()


def _array_at(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Makes an array of what begins at an address: so many elements."""

    @part
    def array(address: int, size: int) -> Any:  # noqa: ANN401
        return carray(_pointer(address), (size,), kind)

    return array


def _table_at(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """The same for lines of as many elements."""

    @part
    def table(address: int, lines: int, size: int) -> Any:  # noqa: ANN401
        return carray(_pointer(address), (lines, size), kind)

    return table


prefetch = _fetcher()
read_number = _reader(int64)
read_key = _reader(uint64)
read_id = _reader(uint32)
read_row = _reader(int32)
read_status = _reader(uint16)
read_byte = _reader_anywhere(uint8)
read_word = _reader_anywhere(uint64)
write_byte = _writer_anywhere(uint8)
write_word = _writer_anywhere(uint64)
write_number = _writer(int64)
write_key = _writer(uint64)
write_id = _writer(uint32)
write_row = _writer(int32)
write_status = _writer(uint16)
numbers_at = _array_at(np.int64)
keys_at = _array_at(np.uint64)
ids_at = _array_at(np.uint32)
flags_at = _array_at(np.uint8)
number_lines_at = _table_at(np.int64)
