"""Which modules have kernels, what identifies their machine code, and files with it.

Machine code is found by the content of the files that it was made of, never by their
times. A unit is a module with kernels. The code of a unit follows from its own file,
from those of all kernels it imports, and from constants of other modules, whose files
count as a whole; those constants are literals, so what these modules import themselves
does not count.

An *image* is a file with the machine code of all kernels, for one kind of processor. It
begins with a line that says what it is, and one with a digest of the rest: a line of
JSON with the key of the sources that it was made of, the features that a processor must
have, and the sizes of the object codes that come next, one for each module with
kernels. What has another beginning or another digest is not loaded.
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
"""Modules that belong to kernels though they have none."""

_IMPORT = re.compile(
    rf"^from {re.escape(PACKAGE)}(?:\.([\w.]+))? import (\([^)]*\)|.*)", re.MULTILINE
)

_NAME = re.compile(r"\w+")


@cache
def units() -> dict[str, Path]:
    """The modules with kernels, and their files."""
    return {
        _module_of(file): file
        for file in sorted(HERE.rglob("*.py"))
        if _is_unit(file.relative_to(HERE))
    }


@cache
def key_of_sources() -> str:
    """What all kernels are made of, and the interfaces that their code is made for."""
    files: set[Path] = set()
    for unit in units():
        files |= needed_by(unit)
    return _digest(files)


def key_of_unit(unit: str, *others: str) -> str:
    """What the code of one unit is made of, and whatever else it depends on."""
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
    """The file of a module, and those of this package that it imports."""
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
    """What identifies the contents of files, on this kind of Python."""
    found = sha256()
    # The places of fields in objects, which wrappers read, follow from the first.
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
"""What machine code may refer to in Python, all of it in the stable interface."""

C_SYMBOLS = ("free", "log10", "malloc", "memcmp", "memcpy", "memmove", "memset")
"""What it may refer to in the C library."""

FIRST_LINE = b"evermat kernels 1\n"


@dataclass(frozen=True, slots=True)
class Image:
    """The machine code of all kernels.

    Attributes:
        key: what identifies the sources and the interfaces that it was made for.
        features: what the processor must have, in the words of LLVM.
        made_with: versions, to be read by people.
        objects: the object code of each unit.
    """

    key: str
    features: list[str]
    made_with: dict[str, str]
    objects: dict[str, bytes] = field(repr=False)


def write_image(image: Image, path: Path) -> None:
    """Write a file as a whole or not at all."""
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
    """The image in a file; `None` if there is none with this key, or it is damaged."""
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
