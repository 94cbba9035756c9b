"""Finds the machine code of all kernels, or compiles it.

The image is searched among those of the installation, and then among those compiled on
this machine: in the folder named by `EVERMAT_CACHE_DIR`, beside the kernels, or in the
user's cache folder. If none fits the sources and the processor, everything is compiled,
once. If the installation cannot be written and there is no home directory, as in
containers, a private temporary folder is used.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import warnings
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import llvmlite.binding as llvm
from llvmlite import __version__ as llvmlite_version

from evermat.engines.embedded.kernel_sources import (
    HERE,
    Image,
    key_of_sources,
    read_image,
    write_image,
)
from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTING = "EVERMAT_CACHE_DIR"
INSTALLED = HERE / "prebuilt"
"""The folder of the images of an installation, one for each kind of processor."""

BASELINE = "x86-64-v3"
"""The processors that images of an installation are compiled for, as LLVM names them.
"""

BASELINE_FEATURES = (
    *("avx", "avx2", "bmi", "bmi2", "crc32", "cx16", "f16c", "fma", "lzcnt", "movbe"),
    *("popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave"),
)
"""The features of such processors."""

_BESIDE_KERNELS = HERE / "__pycache__"


class KernelCacheWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Machine code cannot be kept in one of the usual folders."""

    code: ClassVar[str] = "EM914"


def objects_of_kernels() -> dict[str, bytes]:
    """Return the object code of all units, after compiling it if there is none."""
    found = installed_image() or compiled_image()
    if found is None:
        found = compile_image()
    return found.objects


def installed_image() -> Image | None:
    """Return the image of the installation, if it fits this machine."""
    for file in sorted(INSTALLED.glob("*.image")):
        image = read_image(file, key_of_sources())
        if image is not None and processor_has(image.features):
            return image
    return None


def compiled_image() -> Image | None:
    """Return the image that was compiled on this machine."""
    for folder in folders():
        image = read_image(_file_in(folder), key_of_sources())
        if image is not None and processor_has(image.features):
            return image
    return None


def compile_image() -> Image:
    """Compile all kernels for this processor, and write the image."""
    from evermat.engines.embedded.compilation import (  # noqa: PLC0415  seldom needed
        compile_units,
        one_at_a_time,
    )

    folder = writable_folder()
    name, features = _processor()
    with one_at_a_time(folder):
        if (image := compiled_image()) is not None:
            return image  # another process has compiled it meanwhile
        objects = compile_units(folder, name, features)
        needed = [each[1:] for each in features.split(",") if each.startswith("+")]
        image = Image(key_of_sources(), needed, made_with(name), objects)
        write_image(image, _file_in(folder))
    return image


def compile_for_installation(file: Path) -> None:
    """Compile all kernels for the processors that most machines have."""
    from evermat.engines.embedded.compilation import (  # noqa: PLC0415  seldom needed
        compile_units,
        one_at_a_time,
    )

    folder = writable_folder()
    with one_at_a_time(folder):
        objects = compile_units(folder, BASELINE, "")
    key, features = key_of_sources(), [*BASELINE_FEATURES]
    write_image(Image(key, features, made_with(BASELINE), objects), file)


def made_with(processor: str) -> dict[str, str]:
    """Return the versions of an image's tools, for human readers."""
    return {
        "processor": processor,
        "python": sys.version.split()[0],
        "llvmlite": llvmlite_version,
    }


def processor_has(features: list[str]) -> bool:
    """Return whether this processor has all of some features, as LLVM names them."""
    _, own = _processor()
    return set(features) <= {each[1:] for each in own.split(",") if each[0] == "+"}


def writable_folder() -> Path:
    """Return the first folder that machine code can be kept in."""
    for folder in _lasting_folders():
        if is_writable(folder):
            return folder
    folder = _temporary_folder() or Path(tempfile.mkdtemp(prefix="evermat-kernels-"))
    _warn(folder)
    return folder


def is_writable(folder: Path) -> bool:
    """Return whether files can be created in a folder; create it if necessary."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def folders() -> Iterator[Path]:
    """Yield the folders where machine code may be."""
    yield from _lasting_folders()
    if (shared := _temporary_folder()) is not None:
        yield shared


def _lasting_folders() -> Iterator[Path]:
    """Yield the folders where machine code can be kept, the best one first."""
    if given := os.environ.get(SETTING):
        yield Path(given)
    yield _BESIDE_KERNELS
    if (of_user := _folder_of_user()) is not None:
        yield of_user


def _file_in(folder: Path) -> Path:
    """Return the path of the image for these sources and this processor in a folder."""
    made_for = ",".join((key_of_sources(), *_processor(), llvmlite_version))
    return folder / f"kernels-{sha256(made_for.encode()).hexdigest()[:24]}.image"


def _processor() -> tuple[str, str]:
    """Return the processor and its features, as LLVM names them."""
    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), features.flatten()


def _folder_of_user() -> Path | None:
    """Return the user's folder for caches."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "evermat"
    try:
        return Path.home() / ".cache" / "evermat"
    except RuntimeError:
        return None


def _temporary_folder() -> Path | None:
    """Return a folder that only this user can write to, since its contents are run."""
    user = getattr(os, "getuid", lambda: 0)()
    folder = Path(tempfile.gettempdir()) / f"evermat-kernels-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
    return folder if is_private and found.st_uid == user else None


def _warn(folder: Path) -> None:
    warnings.warn(
        KernelCacheWarning(
            f"compiled code is kept in `{folder}`: neither the installation nor the "
            "home directory can be written",
            help=f"set {SETTING} to a folder that can be written and stays, or the "
            "first use may take minutes each time",
        ),
        stacklevel=2,
    )
