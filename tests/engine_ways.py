"""Ways in which an engine works, beside the one it would choose for few facts.

Random cases are small. So that they meet what only large ones would, limits are moved
for as long as a case is played.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from evermat.engines import make_engine
from evermat.engines.embedded import backward, engine, saturation, small_batch, views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Engine

IN_TURN = "embedded-in-turn"


def treat_small_like_large(patch: pytest.MonkeyPatch) -> None:
    """Have the embedded engine treat small changes like large ones."""
    patch.setattr(small_batch, "MOST_CHANGED", -1)
    patch.setattr(small_batch, "MOST_FROM_SCRATCH", -1)
    patch.setattr(small_batch, "MOST_FACTS", -1)
    patch.setattr(saturation, "MOST_SEEDS", -1)
    patch.setattr(backward, "MOST_BATCH", -1)
    patch.setattr(views, "ALONE", -1)
    patch.setattr(views, "core_count", lambda: 3)


def new_engine(name: str) -> Engine:
    """An engine by the name of its way."""
    return make_engine("embedded" if name == IN_TURN else name)


@contextmanager
def working(name: str, *, compacting: bool = False) -> Iterator[None]:
    """Have engines work in a way.

    Args:
        name: an engine, or the embedded one in turn.
        compacting: clear rows out as soon as fewer hold than not.
    """
    with pytest.MonkeyPatch.context() as patch:
        if name == IN_TURN:
            treat_small_like_large(patch)
        if compacting:
            patch.setattr(engine, "MANY_DEAD", -1)
        yield
