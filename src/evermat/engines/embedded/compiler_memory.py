"""The memory that kernels work in, for code that runs without Numba.

Arrays that a kernel makes are counted by references, in a header before their elements
that Numba has laid down: how many there are, what is to be called when there are none,
with which argument, where the elements are, and how many bytes. This defines the few
functions that compiled code calls to get such memory, and to return it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

HEADER = 48
"""Bytes of the header; the last eight are for memory of others, which is not used."""

_REFERENCES, _ENDING, _ARGUMENT, _DATA, _SIZE = 0, 8, 16, 24, 32

_byte, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_pointer = _byte.as_pointer()
_nothing = ir.VoidType()
_ENDING_TYPE = ir.FunctionType(_nothing, [_pointer, _i64, _pointer])
"""What is called when nothing refers to memory any more."""


def define_memory(module: Any) -> None:
    """Add the functions to a module; those that are not called are dropped again."""
    malloc = ir.Function(module, ir.FunctionType(_pointer, [_i64]), "malloc")
    free = ir.Function(module, ir.FunctionType(_nothing, [_pointer]), "free")
    allocate, (size,), builder = _begin(module, "NRT_Allocate", _pointer, [_i64])
    builder.ret(builder.call(malloc, [size]))
    _, (address,), builder = _begin(module, "NRT_Free", _nothing, [_pointer])
    builder.call(free, [address])
    builder.ret_void()
    sizes = [_i64, _i32]
    aligned, (size, to), builder = _begin(
        module, "NRT_MemInfo_alloc_aligned", _pointer, sizes
    )
    _fill(builder, allocate, size, builder.zext(to, _i64))
    _, (size,), builder = _begin(module, "NRT_MemInfo_alloc", _pointer, [_i64])
    builder.ret(builder.call(aligned, [size, ir.Constant(_i32, 8)]))
    _define_lists(module, allocate, aligned, free)
    _, (header,), builder = _begin(
        module, "NRT_MemInfo_call_dtor", _nothing, [_pointer]
    )
    ending = builder.load(_field(builder, header, _ENDING, _pointer))
    with builder.if_then(_is_there(builder, ending), likely=False):
        end = builder.bitcast(ending, _ENDING_TYPE.as_pointer())
        fields = ((_DATA, _pointer), (_SIZE, _i64), (_ARGUMENT, _pointer))
        builder.call(
            end,
            [builder.load(_field(builder, header, at, kind)) for at, kind in fields],
        )
    builder.call(free, [header])
    builder.ret_void()


def _define_lists(module: Any, allocate: Any, aligned: Any, free: Any) -> None:
    """Memory of lists: the elements are apart from the header, and may have an end."""
    end, (data, _, each), builder = _begin(
        module, "evermat_end_list", _nothing, [*_ENDING_TYPE.args]
    )
    with builder.if_then(_is_there(builder, each)):
        kind = ir.FunctionType(_nothing, [_pointer]).as_pointer()
        builder.call(builder.bitcast(each, kind), [data])
    builder.call(free, [data])
    builder.ret_void()
    _, (size, each), builder = _begin(
        module, "NRT_MemInfo_new_varsize_dtor", _pointer, [_i64, _pointer]
    )
    none = ir.Constant(_pointer, None)
    header = builder.call(aligned, [ir.Constant(_i64, 0), ir.Constant(_i32, 8)])
    with builder.if_then(_is_there(builder, header)):
        data = builder.call(allocate, [size])
        with builder.if_then(builder.not_(_is_there(builder, data)), likely=False):
            builder.call(free, [header])
            builder.ret(none)
        builder.store(data, _field(builder, header, _DATA, _pointer))
        builder.store(size, _field(builder, header, _SIZE, _i64))
        builder.store(each, _field(builder, header, _ARGUMENT, _pointer))
        ending = builder.bitcast(end, _pointer)
        builder.store(ending, _field(builder, header, _ENDING, _pointer))
    builder.ret(header)


def _field(builder: Any, header: Any, at: int, kind: Any) -> Any:
    place = builder.gep(header, [ir.Constant(_i64, at)])
    return builder.bitcast(place, kind.as_pointer())


def _is_there(builder: Any, address: Any) -> Any:
    return builder.icmp_unsigned("!=", address, ir.Constant(_pointer, None))


def _fill(builder: Any, allocate: Any, size: Any, to: Any) -> None:
    """Write a header, with room behind it for elements at a multiple of a number."""
    room = builder.add(builder.add(size, to), ir.Constant(_i64, HEADER))
    too_much = builder.icmp_unsigned("<", room, size)
    with builder.if_then(too_much, likely=False):
        builder.ret(ir.Constant(_pointer, None))
    block = builder.call(allocate, [room])
    nothing = builder.icmp_unsigned("==", block, ir.Constant(_pointer, None))
    with builder.if_then(nothing, likely=False):
        builder.ret(block)
    start = builder.add(builder.ptrtoint(block, _i64), ir.Constant(_i64, HEADER))
    last = builder.sub(to, ir.Constant(_i64, 1))
    data = builder.and_(builder.add(start, last), builder.neg(to))
    one, none = ir.Constant(_i64, 1), ir.Constant(_i64, 0)
    for at in range(0, HEADER, 8):
        value = {_REFERENCES: one, _DATA: data, _SIZE: size}.get(at, none)
        place = builder.gep(block, [ir.Constant(_i64, at)])
        builder.store(value, builder.bitcast(place, _i64.as_pointer()))
    builder.ret(block)


def _begin(module: Any, name: str, result: Any, given: list[Any]) -> Any:
    """A function to be written: it, its arguments, and a builder at its start."""
    function = ir.Function(module, ir.FunctionType(result, given), name)
    return function, function.args, ir.IRBuilder(function.append_basic_block("entry"))
