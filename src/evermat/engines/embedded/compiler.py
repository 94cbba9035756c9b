"""Compiles kernels into object code with Numba, in separate processes.

Numba would optimise each function separately, again in each function that calls it, and
generate machine code for all of them on the way. Here it only types functions and
generates LLVM code; everything that a unit (a file with kernels) needs is linked first,
and then optimised and compiled to machine code once.

Arrays that a kernel allocates are reference counted. Numba defines a header before
their elements: the number of references, the destructor and its argument, the address
of the elements, and their size in bytes. `define_memory` defines the few functions that
compiled code calls to allocate such memory, and to free it.

`python -m evermat.engines.embedded.compiler` reads lines with the name of a unit and a
file for its object code, and answers with a line when the file is written.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import njit, types
from numba.core import codegen as numba_codegen
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.types import unliteral
from numba.extending import intrinsic

from evermat.engines.embedded import runtime
from evermat.engines.embedded.compiler_wrappers import Wrappers
from evermat.engines.embedded.kernel_sources import C_SYMBOLS, PYTHON_SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# ------------------------------------------------------------------------------- memory

HEADER = 48
"""Bytes of the header; the last eight are for external memory, which is not used."""

_REFERENCES, _ENDING, _ARGUMENT, _DATA, _SIZE = 0, 8, 16, 24, 32

_byte, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_pointer = _byte.as_pointer()
_nothing = ir.VoidType()
_ENDING_TYPE = ir.FunctionType(_nothing, [_pointer, _i64, _pointer])
"""The type of destructors."""


def define_memory(module: Any) -> None:
    """Add the functions to a module; those that are not called are removed again."""
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
    """Define the memory of lists: separate elements, and a destructor."""
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
    """Write a header, and the aligned address of the elements after it."""
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
    """Declare a function; return it, its arguments, and a builder at its start."""
    function = ir.Function(module, ir.FunctionType(result, given), name)
    return function, function.args, ir.IRBuilder(function.append_basic_block("entry"))


# ----------------------------------------------------------------------------- compiler

_Function = TypeVar("_Function", bound="Callable[..., object]")

_njit: Any = njit  # its stubs do not list all options
_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class _Library(numba_codegen.JITCodeLibrary):
    """The code of one function and its callees, linked and optimised later."""

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002  as in Numba
        return 0

    def closure(self) -> dict[int, _Library]:
        """Return this library and all that it needs."""
        found: dict[int, _Library] = {}
        waiting = [self]
        while waiting:
            library = waiting.pop()
            if id(library) not in found:
                found[id(library)] = library
                waiting += library._linking_libraries  # noqa: SLF001
        return found


class NumbaCompiler:
    """Collects declarations of kernels, and compiles those of a unit on request."""

    types: Any = types
    record: Any = staticmethod(numba.from_dtype)
    carray: Any = staticmethod(numba.carray)
    intrinsic: Any = staticmethod(intrinsic)

    def __init__(self) -> None:
        self._context: Any = cpu_target.target_context
        self._context.refresh()
        rtsys.initialize(self._context)
        self._codegen: Any = self._context.codegen()
        self._codegen._library_class = _Library  # noqa: SLF001
        self._codegen.set_env = lambda *_: None
        self._declared: dict[str, list[tuple[str, Callable[[], Any]]]] = {}

    def declare(
        self, function: _Function, signature: object, *, inline: bool
    ) -> _Function:
        """See `runtime.Compiler`."""
        options = {**_OPTIONS, **({"forceinline": True} if inline else {})}
        compiled: Any = _njit(**options)(function)
        template_for = compiled.get_call_template

        def result() -> Any:
            if not compiled.overloads:
                compiled.compile(signature)
                compiled.disable_compile()
            (only,) = compiled.overloads.values()
            return only

        def template_when_compiled(arguments: Any, named: Any) -> Any:
            result()
            return template_for(arguments, named)

        compiled.get_call_template = template_when_compiled
        unit = function.__module__
        self._declared.setdefault(unit, []).append((function.__name__, result))
        declared: _Function = compiled
        return declared

    def declare_part(self, function: _Function) -> _Function:
        """See `runtime.Compiler`."""
        compiled: Any = _njit(**_OPTIONS)(function)
        template_for = compiled.get_call_template

        def template_for_any(arguments: Any, named: Any) -> Any:
            # Otherwise a function is compiled once for each constant it is called with.
            return template_for(tuple(map(unliteral, arguments)), named)

        compiled.get_call_template = template_for_any
        declared: _Function = compiled
        return declared

    def object_code(self, unit: str) -> bytes:
        """Return the object code of a module with kernels."""
        import_module(unit)
        module = self._codegen._create_empty_module(unit)  # noqa: SLF001
        define_memory(module)
        wrappers = Wrappers(
            self._context.subtarget(enable_nrt=True), module, unit.replace(".", "_")
        )
        libraries: dict[int, _Library] = {}
        for function, result in self._declared.get(unit, ()):
            compiled = result()
            wrappers.add(function, compiled.fndesc)
            libraries.update(compiled.library.closure())
        visible = wrappers.finish()
        linked = self._link(str(module), libraries.values(), set(visible))
        self._optimise(linked)
        self._check_symbols(linked)
        return bytes(self._machine().emit_object(linked))

    def _link(
        self, wrappers: str, libraries: Iterable[_Library], visible: set[str]
    ) -> Any:
        linked = llvm.parse_assembly(wrappers)
        for library in libraries:
            linked.link_in(library._final_module, preserve=True)  # noqa: SLF001
        for items in (linked.functions, linked.global_variables):
            for item in items:
                if not item.is_declaration and item.name not in visible:
                    item.linkage = "internal"
        linked.verify()
        return linked

    def _check_symbols(self, linked: Any) -> None:
        """Check that the code only refers to known symbols."""
        known = {*PYTHON_SYMBOLS, *C_SYMBOLS}
        for items in (linked.functions, linked.global_variables):
            for item in items:
                is_ours = not item.is_declaration or item.name.startswith("llvm.")
                if not is_ours and item.name not in known:
                    message = f"machine code refers to `{item.name}`"
                    raise LookupError(message)

    def _optimise(self, linked: Any) -> None:
        """Optimise in two passes: the first lets Numba remove reference counting."""
        codegen = self._codegen
        for options in (
            {
                "loop_vectorize": False,
                "slp_vectorize": False,
                "opt": 0,
                "cost": "cheap",
            },
            {},
        ):
            passes, builder = codegen._module_pass_manager(**options)  # noqa: SLF001
            passes.run(linked, builder)

    def _machine(self) -> Any:
        target = llvm.Target.from_triple(llvm.get_process_triple())
        return target.create_target_machine(
            cpu=self._codegen._get_host_cpu_name(),  # noqa: SLF001
            features=self._codegen._get_host_cpu_features(),  # noqa: SLF001
            opt=3,
            reloc="pic",
            codemodel="default",
        )


def _work() -> None:
    """Compile the units named in lines of the input."""
    compiler = NumbaCompiler()
    runtime.begin_compiling(compiler)
    for line in sys.stdin:
        unit, _, file = line.rstrip("\n").partition("\t")
        part = Path(f"{file}.{os.getpid()}")
        code = compiler.object_code(unit)
        part.write_bytes(sha256(code).hexdigest().encode() + b"\n" + code)
        part.replace(file)
        print(unit, flush=True)  # noqa: T201  the answer


if __name__ == "__main__":
    _work()
