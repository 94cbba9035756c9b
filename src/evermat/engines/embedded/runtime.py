"""How kernels are declared, and how they get their machine code.

A kernel is a Python function without Python objects, decorated with the types that it
takes. It is not compiled where it is used: `machine_code` loads what the compiler made
of all kernels before (see `kernel_cache`), so that a process need not even import
Numba. Only processes that compile do; they ask `begin_compiling` to declare kernels to
Numba instead, and import the modules with kernels after that.

The wrappers that take Python objects apart are generated along with the code, and check
what they are given: see `compiler_wrappers`.
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
    """What declares kernels while they are compiled."""

    types: Any
    record: Any
    carray: Any
    intrinsic: Any

    def declare(
        self, function: _Function, signature: object, *, inline: bool
    ) -> _Function:
        """Take a function that can be called from Python and from kernels."""

    def declare_part(self, function: _Function) -> _Function:
        """Take a function that is only called from kernels, with any types."""


class _AnyType:
    """Takes the place of Numba's types where nothing is compiled."""

    def __getitem__(self, layout: object) -> _AnyType:
        return self

    def __call__(self, *_arguments: object) -> _AnyType:
        return self


_compiler: Compiler | None = None
_any: Any = _AnyType()
int32 = int64 = uint8 = uint16 = uint32 = uint64 = void = voidptr = _any
carray: Any = None


def begin_compiling(compiler: Compiler) -> None:
    """Declare kernels to a compiler from now on; before their modules are imported."""
    global _compiler  # noqa: PLW0603  a process either compiles or runs
    _compiler = compiler
    module = sys.modules[__name__]
    for name in TYPES:
        setattr(module, name, getattr(compiler.types, name))
    module.carray = compiler.carray  # type: ignore[attr-defined]


def tuple_of(kind: type, *fields: object) -> Any:  # noqa: ANN401  Numba's types have none
    """The type of named tuples whose fields have some types."""
    return _any if _compiler is None else _compiler.types.NamedTuple(fields, kind)


def pair_of(kind: object) -> Any:  # noqa: ANN401  Numba's types have none
    """The type of pairs of values of one type."""
    return _any if _compiler is None else _compiler.types.UniTuple(kind, 2)


def structure_of(fields: object) -> Any:  # noqa: ANN401  Numba's types have none
    """The type of elements of arrays with named fields."""
    return _any if _compiler is None else _compiler.record(fields)


def kernel(signature: object) -> Callable[[_Function], _Function]:
    """Have a function compiled for the types of a signature."""

    def declare(function: _Function) -> _Function:
        if _compiler is not None:
            return _compiler.declare(function, signature, inline=False)
        check()
        return _loaded(function)

    return declare


def inner_kernel(signature: object) -> Callable[[_Function], _Function]:
    """Have a function that is called for each of many rows compiled into its callers.

    Else each call takes hold of its arrays and lets go of them again, which costs more
    than what most of these functions do.
    """

    def declare(function: _Function) -> _Function:
        if _compiler is not None:
            return _compiler.declare(function, signature, inline=True)
        return _loaded(function)

    return declare


def part(function: _Function) -> _Function:
    """Have a function compiled with the kernels that call it, for the types they use.

    It cannot be called from Python.
    """
    return function if _compiler is None else _compiler.declare_part(function)


def intrinsic(function: _Function) -> _Function:
    """Have a function generate code of its own; only kernels can call it."""
    if _compiler is None:
        return function
    generating: _Function = _compiler.intrinsic(function)
    return generating


def _loaded(function: _Function) -> _Function:
    """The compiled form of a function."""
    from evermat.engines.embedded.machine_code import (  # noqa: PLC0415  not to compile
        compiled_kernel,
    )

    compiled: _Function = compiled_kernel(function.__module__, function.__name__)
    return compiled
