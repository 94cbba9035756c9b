"""What tests of the embedded engine share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evermat.engines.embedded.engine import EmbeddedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Rounds, Saturation
    from evermat.algebra.fixpoint import OnRounds


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each saturation that had rounds whether compiled code ran all of them."""
    answers: list[bool] = []
    saturate = EmbeddedEngine.saturate

    def spy(self: EmbeddedEngine, task: Saturation, on_rounds: OnRounds) -> None:
        known: list[Rounds] = []

        def note(rounds: Rounds) -> None:
            known.append(rounds)
            on_rounds(rounds)

        saturate(self, replace(task), note)
        if known:
            answers.append(all(rounds.are_compiled for rounds in known))

    monkeypatch.setattr(EmbeddedEngine, "saturate", spy)
    yield answers
    assert answers
