"""Declarations of kernels, and how they get their machine code.

A kernel is a Python function without Python objects, decorated with the types of its
arguments. It is not compiled where it is used: `machine_code` loads what the compiler
has made of all kernels in advance (see `kernel_cache`), so a process need not even
import Numba. Only processes that compile do; they call `begin_compiling` to declare
kernels to Numba instead, before they import the modules with kernels.

The wrappers that unpack Python objects are generated along with the code, and check
their arguments: see `compiler_wrappers`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., object]")

TYPES = ("int32", "int64", "uint8", "uint16", "uint32", "uint64", "void", "voidptr")


class Compiler(Protocol):
    """The compiler's side of kernel declarations."""

    types: Any
    record: Any
    carray: Any
    intrinsic: Any

    def declare(
        self, function: _Function, signature: object, *, inline: bool
    ) -> _Function:
        """Declare a function that is called from Python and from kernels."""

    def declare_part(self, function: _Function) -> _Function:
        """Declare a function that is called only from kernels, with any types."""


class _AnyType:
    """Replaces Numba's types where nothing is compiled."""

    def __getitem__(self, layout: object) -> _AnyType:
        return self

    def __call__(self, *_arguments: object) -> _AnyType:
        return self


_compiler: Compiler | None = None
_any: Any = _AnyType()
int32 = int64 = uint8 = uint16 = uint32 = uint64 = void = voidptr = _any
carray: Any = None


def begin_compiling(compiler: Compiler) -> None:
    """Declare kernels to a compiler from now on; call it before importing kernels."""
    global _compiler  # noqa: PLW0603  a process either compiles or runs
    _compiler = compiler
    module = sys.modules[__name__]
    for name in TYPES:
        setattr(module, name, getattr(compiler.types, name))
    module.carray = compiler.carray  # type: ignore[attr-defined]


def tuple_of(kind: type, *fields: object) -> Any:  # noqa: ANN401  Numba's types have none
    """Return the type of named tuples with fields of the given types."""
    return _any if _compiler is None else _compiler.types.NamedTuple(fields, kind)


def pair_of(kind: object) -> Any:  # noqa: ANN401  Numba's types have none
    """Return the type of pairs of values of one type."""
    return _any if _compiler is None else _compiler.types.UniTuple(kind, 2)


def structure_of(fields: object) -> Any:  # noqa: ANN401  Numba's types have none
    """Return the type of array elements with named fields."""
    return _any if _compiler is None else _compiler.record(fields)


def kernel(signature: object) -> Callable[[_Function], _Function]:
    """Declare a kernel for the types of a signature."""

    def declare(function: _Function) -> _Function:
        if _compiler is not None:
            return _compiler.declare(function, signature, inline=False)
        check()
        return _loaded(function)

    return declare


def inner_kernel(signature: object) -> Callable[[_Function], _Function]:
    """Declare a kernel that is inlined into its callers, for calls once per row.

    Otherwise each call acquires its arrays and releases them, which costs more than the
    body of most of these functions.
    """

    def declare(function: _Function) -> _Function:
        if _compiler is not None:
            return _compiler.declare(function, signature, inline=True)
        return _loaded(function)

    return declare


def part(function: _Function) -> _Function:
    """Declare a function that is compiled along with the kernels that call it.

    It cannot be called from Python.
    """
    return function if _compiler is None else _compiler.declare_part(function)


def intrinsic(function: _Function) -> _Function:
    """Declare a function that generates code of its own; only kernels can call it."""
    if _compiler is None:
        return function
    generating: _Function = _compiler.intrinsic(function)
    return generating


def _loaded(function: _Function) -> _Function:
    """Return the compiled form of a function."""
    from evermat.engines.embedded.machine_code import (  # noqa: PLC0415  not to compile
        compiled_kernel,
    )

    compiled: _Function = compiled_kernel(function.__module__, function.__name__)
    return compiled
