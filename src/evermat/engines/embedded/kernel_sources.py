"""Sources of kernels: their modules, the keys of their machine code, and image files.

Machine code is identified by the content of the files that it was compiled from, never
by their modification times. A unit is a module with kernels. The code of a unit depends
on its own file, on those of all kernels it imports, and on constants of other modules,
whose files count as a whole; those constants are literals, so the imports of these
modules do not count.

An *image* is a file with the machine code of all kernels, for one kind of processor.
Its first line is a magic string, the second a digest of the rest: a line of JSON with
the key of the sources, the required processor features, and the sizes of the object
codes that follow, one for each unit. A file with another first line or digest is not
loaded.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = __name__.rpartition(".")[0]
WITH_KERNELS = "kernels"
"""The folder of modules with kernels."""

_TOOLS = ("runtime", "compiler", "compiler_wrappers")
"""The modules that determine how kernels are compiled."""

_ACCESS = ("layout",)
"""Modules that kernels depend on, without kernels of their own."""

_IMPORT = re.compile(
    rf"^from {re.escape(PACKAGE)}(?:\.([\w.]+))? import (\([^)]*\)|.*)", re.MULTILINE
)

_NAME = re.compile(r"\w+")


@cache
def units() -> dict[str, Path]:
    """Return the modules with kernels, and their files."""
    return {
        _module_of(file): file
        for file in sorted(HERE.rglob("*.py"))
        if _is_unit(file.relative_to(HERE))
    }


@cache
def key_of_sources() -> str:
    """Return the key of the sources of all kernels, and of the interfaces they use."""
    files: set[Path] = set()
    for unit in units():
        files |= needed_by(unit)
    return _digest(files)


def key_of_unit(unit: str, *others: str) -> str:
    """Return the key of the sources of one unit, and of anything else it depends on."""
    known, waiting = {unit}, [unit]
    files: set[Path] = set()
    while waiting:
        needed = needed_by(waiting.pop())
        files |= needed
        more = {_module_of(each) for each in needed if _is_kernel_code(each)} - known
        known |= more
        waiting += more
    return _digest(files, unit, *others)


def _is_unit(file: Path) -> bool:
    return file.parent.name == WITH_KERNELS and file.stem not in ("__init__", *_ACCESS)


def _is_kernel_code(file: Path) -> bool:
    return _is_unit(file.relative_to(HERE)) or file.stem in _ACCESS


@cache
def needed_by(module: str) -> set[Path]:
    """Return the file of a module, and those of this package that it imports."""
    file = _file_of(module)
    found = {file, *(HERE / f"{each}.py" for each in _TOOLS)}
    for each, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        module = f"{PACKAGE}.{each}" if each else PACKAGE
        imported = [_file_of(module)]
        if not imported[0].is_file():  # it is a package, and its modules are named
            imported = [_file_of(f"{module}.{name}") for name in _NAME.findall(names)]
        found.update(each for each in imported if each.is_file())
    return found


def _file_of(module: str) -> Path:
    parts = module.removeprefix(PACKAGE).strip(".").split(".")
    return HERE.joinpath(*parts).with_suffix(".py")


def _module_of(file: Path) -> str:
    return ".".join((PACKAGE, *file.relative_to(HERE).with_suffix("").parts))


def _digest(files: set[Path], *others: str) -> str:
    """Return a digest of files, on this kind of Python."""
    found = sha256()
    # The first number determines the offsets of fields in objects, which wrappers read.
    for text in (str(object.__basicsize__), str(sys.maxsize), sys.platform, *others):
        found.update(f"{text}\n".encode())
    for file in sorted(files):
        name = file.relative_to(HERE).as_posix()
        found.update(f"{name} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


# ------------------------------------------------------------------------------- images

PYTHON_SYMBOLS = (
    "PyBool_FromLong",
    "PyBytes_FromStringAndSize",
    "PyErr_Clear",
    "PyErr_NoMemory",
    "PyErr_Occurred",
    "PyErr_SetString",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyExc_RuntimeError",
    "PyLong_AsLongLong",
    "PyLong_AsUnsignedLongLong",
    "PyLong_FromLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyNumber_Index",
    "PyObject_CallFunctionObjArgs",
    "PyObject_IsTrue",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyType_IsSubtype",
    "Py_DecRef",
    "Py_IncRef",
)
"""Symbols of Python that machine code may use, all of them in the stable interface."""

C_SYMBOLS = ("free", "log10", "malloc", "memcmp", "memcpy", "memmove", "memset")
"""Symbols of the C library that it may use."""

FIRST_LINE = b"evermat kernels 1\n"


@dataclass(frozen=True, slots=True)
class Image:
    """The machine code of all kernels.

    Attributes:
        key: identifies the sources and interfaces that it was compiled for.
        features: the required processor features, as LLVM names them.
        made_with: versions, for human readers.
        objects: the object code of each unit.
    """

    key: str
    features: list[str]
    made_with: dict[str, str]
    objects: dict[str, bytes] = field(repr=False)


def write_image(image: Image, path: Path) -> None:
    """Write a file atomically."""
    header = {
        "key": image.key,
        "features": image.features,
        "made_with": image.made_with,
        "sizes": {unit: len(code) for unit, code in image.objects.items()},
    }
    content = json.dumps(header).encode() + b"\n" + b"".join(image.objects.values())
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        part.write_bytes(FIRST_LINE + _checksum(content) + b"\n" + content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_image(path: Path, key: str) -> Image | None:
    """Return the image in a file; `None` if it has another key or is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    first, _, rest = content.partition(b"\n")
    digest, _, rest = rest.partition(b"\n")
    if first + b"\n" != FIRST_LINE or digest != _checksum(rest):
        return None
    line, _, code = rest.partition(b"\n")
    header = json.loads(line)
    if header["key"] != key:
        return None
    objects, start = {}, 0
    for unit, size in header["sizes"].items():
        objects[unit] = code[start : start + size]
        start += size
    return Image(key, header["features"], header["made_with"], objects)


def _checksum(content: bytes) -> bytes:
    return sha256(content).hexdigest().encode()
