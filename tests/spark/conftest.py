"""What all tests of the Spark engine have in common."""

from __future__ import annotations

import pytest

from evermat.engines.spark import one_task


@pytest.fixture(autouse=True)
def _joins_on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are joined as many are; `test_one_task` has it otherwise."""
    monkeypatch.setattr(one_task, "MOST_ROWS", 0)
