"""A folder for compiled kernels, which Numba keeps from one process to the next.

Numba looks for one that it can write: `NUMBA_CACHE_DIR`, then beside the kernels, then
in the home directory. Where the installation is read-only and there is no home, as in
containers, it would refuse to compile at all; a folder for temporary files takes their
place then.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

from evermat.errors import EvermatError

SETTING = "NUMBA_CACHE_DIR"
_BESIDE_KERNELS = Path(__file__).parent / "__pycache__"


class KernelCacheWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Compiled code cannot be kept where it usually is."""

    code: ClassVar[str] = "EM914"


def choose_folder() -> None:
    """See that Numba finds a folder; must be called before kernels are loaded."""
    given = os.environ.get(SETTING)
    if given and is_writable(Path(given)):
        return
    if is_writable(_BESIDE_KERNELS) or is_writable(_folder_of_user()):
        return
    folder = _temporary_folder()
    os.environ[SETTING] = str(folder)  # processes that this one starts share it
    if "numba" in sys.modules:
        from numba.core import config  # noqa: PLC0415  only if it is there

        settings: Any = config  # its settings are made when it is loaded
        settings.CACHE_DIR = str(folder)
    warnings.warn(
        KernelCacheWarning(
            f"compiled code is kept in `{folder}`: neither the installation nor the "
            "home directory can be written",
            help=f"set {SETTING} to a folder that can be written and stays, or the "
            "first use may take minutes each time",
        ),
        stacklevel=2,
    )


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _folder_of_user() -> Path:
    """Where Numba keeps code of users whose installation cannot be written."""
    from numba.misc import appdirs  # noqa: PLC0415  seldom needed

    folders: Any = appdirs  # it has no types
    return Path(folders.AppDirs(appname="numba", appauthor=False).user_cache_dir)


def _temporary_folder() -> Path:
    """A folder that only this user can write: what is in it is run."""
    user = getattr(os, "getuid", lambda: 0)()
    folder = Path(tempfile.gettempdir()) / f"evermat-kernels-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="evermat-kernels-"))
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
    if is_private and found.st_uid == user and is_writable(folder):
        return folder
    return Path(tempfile.mkdtemp(prefix="evermat-kernels-"))
