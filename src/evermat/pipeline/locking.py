"""One run of a pipeline at a time.

Two runs at once would replace the same folders, and the one that began first might
publish last, what is no longer so. The second one is refused: a stream would have it
wait for ever.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.pipeline.config import Config


class PipelineBusyError(EvermatError, RuntimeError):
    """Another run of the same pipeline is under way."""

    code: ClassVar[str] = "EM808"


@contextmanager
def alone(config: Config) -> Iterator[None]:
    """Keep other runs of the same configuration away, on this machine.

    The configuration itself is what is locked: it needs no further file, which a run
    that was killed would leave behind, and the system unlocks it when a process ends.

    Raises:
        PipelineBusyError: there is another run.
    """
    if sys.platform == "win32" or not config.file.exists():
        yield  # nobody else can run what is no longer there
        return
    import fcntl  # noqa: PLC0415  not everywhere

    with config.file.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineBusyError(
                f"another run of `{config.file}` is under way",
                law="a pipeline replaces its outputs, which only one run can do at a "
                "time",
                help="wait until it is over; a stream is ended by an interrupt",
            ) from None
        yield
