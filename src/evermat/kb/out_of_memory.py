"""Calls for which there is not enough memory."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.maintenance.limits import resident_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_WORDS = re.compile(r"of size (\d+)")
"""How Arrow says what it has not got."""


class OutOfMemoryError(EvermatError, MemoryError):
    """A call that needs more memory than there is; everything is as it was before.

    Attributes:
        needed: bytes that could not be had in one piece, if that is known.
        held: bytes that the process held when it failed.
    """

    code: ClassVar[str] = "EM611"

    def __init__(self, needed: int | None, held: int) -> None:
        self.needed = needed
        self.held = held
        piece = "more" if needed is None else f"{_amount(needed)} more in one piece"
        super().__init__(
            f"there is not enough memory: {piece} would be needed, where the process "
            f"holds {_amount(held)}",
            law="what does not fit changes nothing",
            help="allow the process more memory, divide the update, or limit what "
            "rules derive with a budget (`memory_bytes`)",
        )


@contextmanager
def out_of_memory() -> Iterator[None]:
    """Have a lack of memory in the block told as an `OutOfMemoryError`."""
    try:
        yield
    except EvermatError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(_needed(error), resident_memory()) from error


def _needed(error: MemoryError) -> int | None:
    """The bytes of the array that could not be made."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and dtype is not None:
        return int(math.prod(shape) * dtype.itemsize)
    found = _IN_WORDS.search(str(error))
    return int(found[1]) if found else None


def _amount(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004  what units are apart
            return f"{size:,.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"
