"""Images: files with the machine code of all kernels, for one kind of processor.

An image begins with a line that says what it is, and one with a digest of the rest: a
line of JSON with the key of the sources that it was made of, the features that a
processor must have, and the sizes of the object codes that come next, one for each
module with kernels. What has another beginning or another digest is not loaded.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
        part.write_bytes(FIRST_LINE + _digest(content) + b"\n" + content)
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
    if first + b"\n" != FIRST_LINE or digest != _digest(rest):
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


def _digest(content: bytes) -> bytes:
    return sha256(content).hexdigest().encode()
