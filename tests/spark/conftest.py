"""What all tests of the Spark engine have in common."""

from __future__ import annotations

import pytest

from evermat.engines.spark import one_task, pieces


@pytest.fixture(autouse=True)
def _joins_on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are joined by Spark; `test_one_task` and `test_pieces` see to others."""
    monkeypatch.setattr(one_task, "MOST_ROWS", 0)
    monkeypatch.setattr(pieces, "MOST_SENT", -1)
