"""What tests of the embedded engine share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat.engines.embedded import whole_updates

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each update whether it was carried out as a whole."""
    answers: list[bool] = []
    run = whole_updates.WholeUpdates.run

    def spy(self: whole_updates.WholeUpdates, *given: object) -> object:
        done = run(self, *given)  # type: ignore[arg-type]
        answers.append(done is not None)
        return done

    monkeypatch.setattr(whole_updates.WholeUpdates, "run", spy)
    yield answers
    assert answers
