"""Which files a program may name.

A program comes from somewhere, and names files: others to include, tables to import,
files to export to. It may read what is beside or below it, and what the caller has
allowed; another file might hold secrets, and an error message would show a line of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.errors import Label, ParseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ALLOWED: ContextVar[tuple[Path, ...]] = ContextVar("evermat_allowed", default=())


class PathNotAllowedError(ParseError):
    """A file that a program names and may not read or write."""

    code = "EM106"


@contextmanager
def allowing(paths: Iterable[str | Path]) -> Iterator[None]:
    """Let programs name files at or below these paths, as long as this lasts."""
    token = _ALLOWED.set((*_ALLOWED.get(), *map(Path, paths)))
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def is_allowed(path: Path, root: Path) -> bool:
    """Whether a path leads below a folder, or to what the caller has allowed.

    Links and `..` are followed, so that they lead nowhere else.
    """
    try:
        real = path.resolve()
        places = [place.resolve() for place in (root, *_ALLOWED.get())]
    except (OSError, ValueError, RuntimeError):  # links in a circle; a zero byte
        return False
    return any(real.is_relative_to(place) for place in places)


def require_allowed(path: Path, root: Path, labels: tuple[Label, ...] = ()) -> None:
    """Refuse a path that a program must not name.

    Args:
        path: where the file is, or would be.
        root: the folder of the program, or that for its outputs.
        labels: where the program names it.

    Raises:
        PathNotAllowedError: it is elsewhere.
    """
    if not is_allowed(path, root):
        shown = str(path).replace("\0", "\\0")
        raise PathNotAllowedError(
            f"`{shown}` is neither in nor below `{root}`",
            labels=labels,
            law="a program names files beside or below it, or in places that the "
            "caller allows",
            help=f"to allow it, give --allow-path {Path(shown).parent}, or "
            "`allow_paths=` in Python",
        )
