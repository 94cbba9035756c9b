"""The wrappers through which Python calls kernels.

For each kernel a C function with the `METH_FASTCALL` convention is generated: it
unpacks numbers, arrays and tuples, releases the interpreter lock, calls the kernel and
converts its result to an object. It depends only on Python's stable interface and the
offsets of a few fields of NumPy's arrays, so the same code works for all versions of
Python from 3.11 on; Numba's own wrappers need Numba at run time.

Arguments of other types than those of the signature are rejected with a `TypeError`:
for a number, the wrapper accepts anything that Python can convert to one; for an array,
exactly its element type and layout, aligned and writable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.typeof import typeof  # noqa: F401  registers NumPy's types
from numba.np import numpy_support

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER = object.__basicsize__
"""Bytes of an object before its fields."""

DATA, NDIM, SHAPE = HEADER, HEADER + 8, HEADER + 16
STRIDES, DTYPE, FLAGS = HEADER + 24, HEADER + 40, HEADER + 48
"""Offsets of the fields of arrays, which are stable according to
`numpy/ndarraytypes.h`.
"""

BYTE_ORDER, TYPE_NUMBER, ITEM_SIZE = HEADER + 10, HEADER + 12, HEADER + 24
"""Offsets of the fields of element types, since NumPy 2."""

CONTIGUOUS, ALIGNED, WRITABLE = 0x1, 0x100, 0x400
FASTCALL = 0x80

CONTEXT = ("none", "array_type", "array_interface", "mismatch", "failure")
"""The objects that are filled in when an image is loaded: `None`, the array type, the
table of NumPy's functions, and two Python functions, for calls with invalid arguments
and for exceptions of kernels.
"""

_NEW_ARRAY = 93
"""The index of `PyArray_New` in the table."""

_byte, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_pointer = _byte.as_pointer()
_pointers = _pointer.as_pointer()
_nothing = ir.VoidType()

_PYTHON: dict[str, tuple[Any, list[Any]]] = {
    "PyLong_AsLongLong": (_i64, [_pointer]),
    "PyLong_AsUnsignedLongLong": (_i64, [_pointer]),
    "PyNumber_Index": (_pointer, [_pointer]),
    "PyObject_IsTrue": (_i32, [_pointer]),
    "PyErr_Occurred": (_pointer, []),
    "PyType_IsSubtype": (_i32, [_pointer, _pointer]),
    "PyTuple_Size": (_i64, [_pointer]),
    "PyTuple_GetItem": (_pointer, [_pointer, _i64]),
    "PyTuple_New": (_pointer, [_i64]),
    "PyTuple_SetItem": (_i32, [_pointer, _i64, _pointer]),
    "PyLong_FromLongLong": (_pointer, [_i64]),
    "PyLong_FromUnsignedLongLong": (_pointer, [_i64]),
    "PyBool_FromLong": (_pointer, [_i64]),
    "PyBytes_FromStringAndSize": (_pointer, [_pointer, _i64]),
    "PyObject_CallFunctionObjArgs": (_pointer, [_pointer, _pointer, _pointer]),
    "PyEval_SaveThread": (_pointer, []),
    "PyEval_RestoreThread": (_nothing, [_pointer]),
    "Py_IncRef": (_nothing, [_pointer]),
    "Py_DecRef": (_nothing, [_pointer]),
    "memcpy": (_pointer, [_pointer, _pointer, _i64]),
}


class Wrappers:
    """The wrappers of one image, in a module of their own."""

    def __init__(self, context: Any, module: Any, suffix: str) -> None:
        self.context = context
        self.module = module
        self._methods: list[tuple[str, Any]] = []
        self._suffix = suffix
        self._context_table = _global(
            module, f"context_{suffix}", ir.ArrayType(_pointer, len(CONTEXT))
        )

    def add(self, name: str, described: Any) -> None:
        """Generate the wrapper of a compiled function."""
        kind = ir.FunctionType(_pointer, [_pointer, _pointers, _i64])
        function = ir.Function(self.module, kind, f"wrapper_{len(self._methods)}")
        function.linkage = "internal"
        _Wrapper(self, function, name, described).generate()
        self._methods.append((name, function))

    def finish(self) -> list[str]:
        """Write the table of all wrappers; return the symbols to export."""
        entry = ir.LiteralStructType([_pointer, _pointer, _i64, _pointer])
        entries = [
            ir.Constant.literal_struct(
                [
                    self.text(name),
                    function.bitcast(_pointer),
                    ir.Constant(_i64, FASTCALL),
                    ir.Constant(_pointer, None),
                ]
            )
            for name, function in self._methods
        ]
        entries.append(ir.Constant(entry, None))
        kind = ir.ArrayType(entry, len(entries))
        table = _global(self.module, f"methods_{self._suffix}", kind)
        table.initializer = ir.Constant(kind, entries)
        return [table.name, self._context_table.name]

    def text(self, text: str) -> Any:
        """Return the address of a C string."""
        array = cgutils.make_bytearray(text.encode() + b"\0")
        constant = cgutils.global_constant(self.module, ".const.text", array)
        return constant.bitcast(_pointer)

    def given(self, builder: Any, name: str) -> Any:
        """Return one of the objects that are filled in when the image is loaded."""
        at = [ir.Constant(_i32, 0), ir.Constant(_i32, CONTEXT.index(name))]
        return builder.load(builder.gep(self._context_table, at))


class _Wrapper:
    """A wrapper being generated."""

    def __init__(
        self,
        wrappers: Wrappers,
        function: Any,
        name: str,
        described: Any,
    ) -> None:
        self._wrappers, self._described, self._name = wrappers, described, name
        self._context: Any = wrappers.context
        self._function = function
        self._builder: Any = ir.IRBuilder(function.append_basic_block("entry"))
        self._refused: Any = function.append_basic_block("refused")
        self._failed: Any = function.append_basic_block("failed")

    def generate(self) -> None:
        builder, described = self._builder, self._described
        _, arguments, count = self._function.args
        wanted = ir.Constant(_i64, len(described.argtypes))
        self._go_on_if(builder.icmp_unsigned("==", count, wanted), self._refused)
        values = [
            self._take(kind, builder.load(builder.gep(arguments, [_number(at)])))
            for at, kind in enumerate(described.argtypes)
        ]
        released = self._call("PyEval_SaveThread")
        native = self._context.declare_function(self._wrappers.module, described)
        status, result = self._context.call_conv.call_function(
            builder, native, described.restype, described.argtypes, values
        )
        self._call("PyEval_RestoreThread", released)
        with builder.if_then(status.is_error, likely=False):
            self._raise(status)
        builder.ret(self._object(described.restype, result))
        self._finish()

    def _finish(self) -> None:
        """Generate the paths for invalid arguments and for errors of Python."""
        builder = self._builder
        builder.position_at_end(self._refused)
        handler = self._wrappers.given(builder, "mismatch")
        types_ = ", ".join(str(each) for each in self._described.argtypes)
        text = self._wrappers.text(f"{self._name}({types_})")
        size = len(self._name) + len(types_) + 2
        self._call_handler(handler, text, _number(size))
        builder.branch(self._failed)
        builder.position_at_end(self._failed)
        builder.ret(ir.Constant(_pointer, None))

    def _raise(self, status: Any) -> None:
        """Raise the exception of the kernel, which is known at compile time."""
        builder = self._builder
        exception = builder.load(status.excinfoptr)
        pickled = builder.extract_value(exception, 0)
        size = builder.sext(builder.extract_value(exception, 1), _i64)
        handler = self._wrappers.given(builder, "failure")
        self._call_handler(handler, pickled, size)
        builder.ret(ir.Constant(_pointer, None))

    def _call_handler(self, handler: Any, text: Any, size: Any) -> None:
        """Call a Python function that raises an error."""
        read = self._call("PyBytes_FromStringAndSize", text, size)
        self._go_on_if(self._is_there(read), self._failed)
        end = ir.Constant(_pointer, None)
        self._call("PyObject_CallFunctionObjArgs", handler, read, end)
        self._call("Py_DecRef", read)

    # -------------------------------------------------------- from Python

    def _take(self, kind: Any, item: Any) -> Any:
        """Return the value of an argument."""
        if isinstance(kind, types.Boolean):
            return self._take_truth(item)
        if isinstance(kind, types.Integer):
            return self._take_number(kind, item)
        if isinstance(kind, types.Array):
            return self._take_array(kind, item)
        if isinstance(kind, types.BaseTuple):
            return self._take_tuple(kind, item)
        message = f"no kernel can be called with a {kind}"
        raise TypeError(message)

    def _take_truth(self, item: Any) -> Any:
        builder = self._builder
        truth = self._call("PyObject_IsTrue", item)
        none = ir.Constant(_i32, 0)
        self._go_on_if(builder.icmp_signed(">=", truth, none), self._failed)
        return builder.icmp_signed("!=", truth, none)

    def _take_number(self, kind: Any, item: Any) -> Any:
        builder = self._builder
        if kind.signed:
            value = self._call("PyLong_AsLongLong", item)
        else:
            exact = self._call("PyNumber_Index", item)
            self._go_on_if(self._is_there(exact), self._failed)
            value = self._call("PyLong_AsUnsignedLongLong", exact)
            self._call("Py_DecRef", exact)
        is_error = builder.icmp_signed("==", value, _number(-1))
        with builder.if_then(is_error, likely=False):
            raised = self._call("PyErr_Occurred")
            self._go_on_if(builder.not_(self._is_there(raised)), self._failed)
        width = kind.bitwidth
        return value if width == 64 else builder.trunc(value, ir.IntType(width))  # noqa: PLR2004

    def _take_tuple(self, kind: Any, item: Any) -> Any:
        builder = self._builder
        size = self._call("PyTuple_Size", item)
        self._go_on_if(builder.icmp_signed("!=", size, _number(-1)), self._failed)
        same = builder.icmp_signed("==", size, _number(len(kind.types)))
        self._go_on_if(same, self._refused)
        values = []
        for at, each in enumerate(kind.types):
            member = self._call("PyTuple_GetItem", item, _number(at))
            values.append(self._take(each, member))
        return self._context.make_tuple(builder, kind, values)

    def _take_array(self, kind: Any, item: Any) -> Any:
        """Return the descriptor of an array, which the caller keeps alive."""
        builder = self._builder
        self._check_type(item)
        flags = self._field(item, FLAGS, _i32)
        wanted = ALIGNED | (CONTIGUOUS if kind.layout == "C" else 0)
        wanted |= WRITABLE if kind.mutable else 0
        mask = ir.Constant(_i32, wanted)
        fits = builder.icmp_unsigned("==", builder.and_(flags, mask), mask)
        self._go_on_if(fits, self._refused)
        ndim = self._field(item, NDIM, _i32)
        same = builder.icmp_signed("==", ndim, ir.Constant(_i32, kind.ndim))
        self._go_on_if(same, self._refused)
        self._check_elements(kind, self._field(item, DTYPE, _pointer))
        shape = self._numbers(self._field(item, SHAPE, _pointer), kind.ndim)
        strides = self._numbers(self._field(item, STRIDES, _pointer), kind.ndim)
        total = shape[0]
        for each in shape[1:]:
            total = builder.mul(total, each)
        array = self._context.make_array(kind)(self._context, builder)
        array.meminfo = ir.Constant(array.meminfo.type, None)
        array.parent = builder.bitcast(item, array.parent.type)
        array.nitems = total
        array.itemsize = _number(self._size_of(kind.dtype))
        array.data = builder.bitcast(self._field(item, DATA, _pointer), array.data.type)
        array.shape = cgutils.pack_array(builder, shape)
        array.strides = cgutils.pack_array(builder, strides)
        return array._getvalue()  # noqa: SLF001  Numba's own way

    def _check_type(self, item: Any) -> None:
        builder = self._builder
        found = self._field(item, HEADER - 8, _pointer)
        wanted = self._wrappers.given(builder, "array_type")
        is_other = builder.icmp_unsigned("!=", found, wanted)
        with builder.if_then(is_other, likely=False):
            under = self._call("PyType_IsSubtype", found, wanted)
            is_under = builder.icmp_signed("!=", under, ir.Constant(_i32, 0))
            self._go_on_if(is_under, self._refused)

    def _check_elements(self, kind: Any, found: Any) -> None:
        """Check the type and the byte order of elements."""
        builder = self._builder
        order = self._field(found, BYTE_ORDER, _byte)
        swapped = ir.Constant(_byte, ord(np.dtype("i4").newbyteorder().byteorder))
        self._go_on_if(builder.icmp_signed("!=", order, swapped), self._refused)
        number = self._field(found, TYPE_NUMBER, _i32)
        fits: Any = ir.Constant(ir.IntType(1), 0)
        wanted = numpy_support.as_dtype(kind.dtype)
        for same in _numbers_of(wanted):
            is_this = builder.icmp_signed("==", number, ir.Constant(_i32, same))
            fits = builder.or_(fits, is_this)
        self._go_on_if(fits, self._refused)
        size = self._field(found, ITEM_SIZE, _i64)
        same = builder.icmp_signed("==", size, _number(wanted.itemsize))
        self._go_on_if(same, self._refused)

    # ---------------------------------------------------------- to Python

    def _object(self, kind: Any, value: Any) -> Any:
        """Return the result as an object."""
        if isinstance(kind, types.NoneType):
            none = self._wrappers.given(self._builder, "none")
            self._call("Py_IncRef", none)
            return none
        if isinstance(kind, types.Boolean):
            return self._call("PyBool_FromLong", self._builder.zext(value, _i64))
        if isinstance(kind, types.Integer):
            return self._number_object(kind, value)
        if isinstance(kind, types.Array):
            return self._array_object(kind, value)
        if isinstance(kind, types.BaseTuple):
            return self._tuple_object(kind, value)
        message = f"no kernel can return a {kind}"
        raise TypeError(message)

    def _number_object(self, kind: Any, value: Any) -> Any:
        widen = self._builder.sext if kind.signed else self._builder.zext
        if kind.bitwidth < 64:  # noqa: PLR2004
            value = widen(value, _i64)
        maker = "PyLong_FromLongLong" if kind.signed else "PyLong_FromUnsignedLongLong"
        return self._call(maker, value)

    def _tuple_object(self, kind: Any, value: Any) -> Any:
        made = self._call("PyTuple_New", _number(len(kind.types)))
        self._go_on_if(self._is_there(made), self._failed)
        for at, each in enumerate(kind.types):
            member = self._object(each, self._builder.extract_value(value, at))
            self._call("PyTuple_SetItem", made, _number(at), member)
        return made

    def _array_object(self, kind: Any, value: Any) -> Any:
        """Return the argument itself if it is returned, or a copy of a new array."""
        builder, context = self._builder, self._context
        array = context.make_array(kind)(context, builder, value)
        given = builder.bitcast(array.parent, _pointer)
        result = cgutils.alloca_once(builder, _pointer)
        with builder.if_else(self._is_there(given)) as (is_given, is_new):
            with is_given:
                self._check_is_whole(kind, array, given)
                self._call("Py_IncRef", given)
                builder.store(given, result)
            with is_new:
                builder.store(self._copied(kind, array), result)
                context.nrt.decref(builder, kind, value)
        return builder.load(result)

    def _check_is_whole(self, kind: Any, array: Any, given: Any) -> None:
        builder = self._builder
        start = self._field(given, DATA, _pointer)
        here = builder.bitcast(array.data, _pointer)
        self._go_on_if(builder.icmp_unsigned("==", start, here), self._refused)
        sizes = self._numbers(self._field(given, SHAPE, _pointer), kind.ndim)
        for at, size in enumerate(sizes):
            own = builder.extract_value(array.shape, at)
            self._go_on_if(builder.icmp_signed("==", own, size), self._refused)

    def _copied(self, kind: Any, array: Any) -> Any:
        """Return a NumPy array with the elements of an array made by a kernel."""
        builder = self._builder
        sizes = cgutils.alloca_once_value(builder, array.shape)
        table = builder.bitcast(
            self._wrappers.given(builder, "array_interface"), _pointers
        )
        maker = ir.FunctionType(
            _pointer,
            [_pointer, _i32, _pointer, _i32, _pointer, _pointer, _i32, _i32, _pointer],
        ).as_pointer()
        make = builder.load(builder.gep(table, [_number(_NEW_ARRAY)]))
        none, zero = ir.Constant(_pointer, None), ir.Constant(_i32, 0)
        number = ir.Constant(_i32, numpy_support.as_dtype(kind.dtype).num)
        made = builder.call(
            builder.bitcast(make, maker),
            [
                self._wrappers.given(builder, "array_type"),
                ir.Constant(_i32, kind.ndim),
                builder.bitcast(sizes, _pointer),
                number,
                none,
                none,
                zero,
                zero,
                none,
            ],
        )
        with builder.if_then(self._is_there(made)):
            bytes_ = builder.mul(array.nitems, array.itemsize)
            source = builder.bitcast(array.data, _pointer)
            self._call("memcpy", self._field(made, DATA, _pointer), source, bytes_)
        return made

    # -------------------------------------------------------------- pieces

    def _call(self, name: str, *arguments: Any) -> Any:
        result, kinds = _PYTHON[name]
        function = cgutils.get_or_insert_function(
            self._wrappers.module, ir.FunctionType(result, kinds), name
        )
        return self._builder.call(function, arguments)

    def _go_on_if(self, condition: Any, otherwise: Any) -> None:
        following = self._function.append_basic_block()
        branch = self._builder.cbranch(condition, following, otherwise)
        branch.set_weights([99, 1])
        self._builder.position_at_end(following)

    def _is_there(self, item: Any) -> Any:
        return self._builder.icmp_unsigned("!=", item, ir.Constant(_pointer, None))

    def _field(self, item: Any, offset: int, kind: Any) -> Any:
        at = self._builder.gep(item, [_number(offset)])
        return self._builder.load(self._builder.bitcast(at, kind.as_pointer()))

    def _numbers(self, start: Any, count: int) -> list[Any]:
        return [self._field(start, 8 * at, _i64) for at in range(count)]

    def _size_of(self, kind: Any) -> int:
        return int(numpy_support.as_dtype(kind).itemsize)


def _number(value: int) -> Any:
    return ir.Constant(_i64, value)


def _numbers_of(wanted: np.dtype[Any]) -> Iterable[int]:
    """Return NumPy's numbers of a type: C has several names for some."""
    names = "bBhHiIlLqQ"
    same = {
        np.dtype(each).num
        for each in names
        if np.dtype(each).kind == wanted.kind
        and np.dtype(each).itemsize == wanted.itemsize
    }
    return sorted(same | {wanted.num})


def _global(module: Any, name: str, kind: Any) -> Any:
    """Define an exported variable of a module."""
    variable = ir.GlobalVariable(module, kind, name)
    variable.initializer = ir.Constant(kind, None)
    return variable
