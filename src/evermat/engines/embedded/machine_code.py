"""Loads the machine code of kernels, and makes Python functions of it.

LLVM links the object code of an image into the process, which takes a few milliseconds
and needs neither a compiler nor Numba. Each unit has a table of methods, like an
extension module, and a table that is filled in here with the Python and NumPy objects
that its wrappers need.
"""

from __future__ import annotations

import ctypes
import os
import pickle
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import llvmlite.binding as llvm
import numpy as np

from evermat.engines.embedded.kernel_cache import objects_of_kernels
from evermat.engines.embedded.kernel_sources import C_SYMBOLS, PYTHON_SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_lock = Lock()
_loaded: dict[str, dict[str, Callable[..., Any]]] = {}
_kept: list[object] = []
"""Objects that loaded code refers to; they live as long as the process."""


def compiled_kernel(module: str, name: str) -> Any:  # noqa: ANN401  of any type
    """Return a kernel by the module that declares it, and its name."""
    with _lock:
        if not _loaded:
            _loaded.update(load(objects_of_kernels()))
    return _loaded[module][name]


def load(objects: Mapping[str, bytes]) -> dict[str, dict[str, Callable[..., Any]]]:
    """Link object code into the process; return the kernels of each unit by name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for library, names in (
        (ctypes.pythonapi, PYTHON_SYMBOLS),
        (ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None), C_SYMBOLS),
    ):
        for name in names:
            symbol = ctypes.c_char.in_dll(library, name)
            llvm.add_symbol(name, ctypes.addressof(symbol))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for code in objects.values():
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()  # one by one: it says which symbol is missing
    _kept.append(engine)
    return {unit: _unit(engine, unit) for unit in objects}


class _Method(ctypes.Structure):
    """The C structure that describes a function to Python (`PyMethodDef`)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _unit(engine: Any, unit: str) -> dict[str, Callable[..., Any]]:  # noqa: ANN401
    """Fill in the table of a unit's wrappers; return its functions."""
    symbol = unit.replace(".", "_")
    context = engine.get_global_value_address(f"context_{symbol}")
    given = (None, np.ndarray, _numpy_functions(), _mismatch, _failure)
    slots = (ctypes.c_void_p * len(given)).from_address(context)
    slots[:] = [each if isinstance(each, int) else id(each) for each in given]
    start = engine.get_global_value_address(f"methods_{symbol}")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    make.restype = ctypes.py_object
    functions = {}
    while (method := _Method.from_address(start)).name:
        functions[method.name.decode()] = make(start, None, None)
        start += ctypes.sizeof(_Method)
    return functions


def _numpy_functions() -> int:
    """Return the address of NumPy's table of functions for compiled code."""
    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.argtypes, find.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    module = import_module("numpy._core._multiarray_umath")
    return int(find(module._ARRAY_API, None))  # noqa: SLF001  has no other name


def _mismatch(signature: bytes) -> NoReturn:
    """Raise the error for arguments of the wrong types."""
    message = f"arguments do not fit {signature.decode()}"
    raise TypeError(message)


def _failure(pickled: bytes) -> NoReturn:
    """Raise the error of a kernel: as in Numba, a class, its arguments and a place."""
    kind, arguments, _place = pickle.loads(pickled)  # noqa: S301  our own machine code
    raise kind(*(arguments or ()))
