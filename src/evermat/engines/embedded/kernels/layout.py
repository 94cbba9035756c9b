"""Descriptors of relations and indexes for kernels, and access to memory by address.

A relation or an index has a descriptor, its *layout*: a short array of numbers, among
them the addresses of its arrays. It is allocated once, so its own address never
changes, and is brought up to date before a kernel reads it.

The positions of the numbers are compiled into kernels, so that changing one means
compiling all kernels again.
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
"""A relation: the address of its columns, its capacity in rows, the addresses of its
status and its two counters (0 if there are none), the address of the layout of its
primary index, and its number of columns."""

RUNS, ROOM_OF_LAST, FIRST_RUN = range(3)
"""An index: the number of runs, the capacity of the last one in keys, and the position
at which the numbers of the first run begin."""

KEYS, ROWS, SIZE, DIRECTORY, BUCKETS, BASE, SHIFT, FILTER, MASK, ARITY_OF_RUN = range(
    10
)
"""A run: the addresses and lengths of its arrays, and the parameters of its directory
and its filter; see `index.Run`."""

MOST_RUNS = 40
"""An upper bound: each run is at most a third as long as the one before it, and row ids
have 31 bits."""


def relation_layout() -> Numbers:
    """Return an empty layout of a relation."""
    return np.zeros(ARITY + 1, np.int64)


def index_layout() -> Numbers:
    """Return an empty layout of an index."""
    return np.zeros(FIRST_RUN + ARITY_OF_RUN * MOST_RUNS, np.int64)


def address(array: npt.NDArray[np.generic]) -> int:
    """Return the address of the first element of an array."""
    return int(array.__array_interface__["data"][0])


# ------------------------------------------------------------------------------- access


def _reader(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Make an intrinsic that reads an element, by address of the array and place."""

    @intrinsic
    def read(_context: Any, _address: Any, _at: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            start = builder.inttoptr(args[0], pointer)
            return builder.load(builder.gep(start, [args[1]]))

        return kind(int64, int64), generate

    return read


def _reader_anywhere(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Make an intrinsic that reads from an address, which need not be aligned."""

    @intrinsic
    def read(_context: Any, _address: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            loaded = builder.load(builder.inttoptr(args[0], pointer))
            loaded.align = 1
            return loaded

        return kind(int64), generate

    return read


def _writer(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Make an intrinsic that writes an element, by address of the array and place."""

    @intrinsic
    def write(_context: Any, _address: Any, _at: Any, _value: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            start = builder.inttoptr(args[0], pointer)
            builder.store(args[2], builder.gep(start, [args[1]]))
            return context.get_dummy_value()

        return void(int64, int64, kind), generate

    return write


def _writer_anywhere(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Make an intrinsic that writes to an address, which need not be aligned."""

    @intrinsic
    def write(_context: Any, _address: Any, _value: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
            pointer = context.get_value_type(kind).as_pointer()
            stored = builder.store(args[1], builder.inttoptr(args[0], pointer))
            stored.align = 1
            return context.get_dummy_value()

        return void(int64, kind), generate

    return write


def _fetcher() -> Any:  # noqa: ANN401  Numba's types have none
    """Make an intrinsic that prefetches the cache line of an address."""

    @intrinsic
    def fetch(_context: Any, _address: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
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
            start = builder.inttoptr(args[0], pointer)
            builder.call(function, [start, to_read, keep, data])
            return context.get_dummy_value()

        return void(int64), generate

    return fetch


def _pointer_maker() -> Any:  # noqa: ANN401  Numba's types have none
    """Make an intrinsic that converts a number to a pointer."""

    @intrinsic
    def point(_context: Any, _address: Any) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
            return builder.inttoptr(args[0], context.get_value_type(voidptr))

        return voidptr(int64), generate

    return point


_pointer = _pointer_maker()


def _array_at(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Make a function that views `size` elements at an address as an array."""

    @part
    def array(address: int, size: int) -> Any:  # noqa: ANN401
        return carray(_pointer(address), (size,), kind)

    return array


def _table_at(kind: Any) -> Any:  # noqa: ANN401  Numba's types have none
    """Make a function that views `lines` rows of `size` elements as a table."""

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
