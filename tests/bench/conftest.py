"""What tests of measurements share."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from evermat.bench import maintain, materialise, modules, paper, processes, tasks
from evermat.bench.processes import Measured, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.bench.processes import Record


@pytest.fixture
def uncollected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collect no garbage between steps: in tests there is much to look through."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, uncollected: None) -> Iterator[None]:
    """Do tasks here instead of in processes of their own, to save their start."""
    del uncollected
    records: list[Record] = []

    def do(task: Mapping[str, object], *, time_limit: float) -> Measured:
        assert time_limit > 0
        records.clear()
        tasks.TASKS[str(task["task"])](dict(task))
        refusals = [each for each in records if each["event"] == "refused"]
        status = Status.REFUSED if refusals else Status.DONE
        return Measured(status, tuple(records))

    def tell(event: str, **fields: object) -> None:
        records.append({"event": event, **fields})

    monkeypatch.setattr(tasks, "tell", tell)
    for module in (maintain, materialise, modules, paper, processes):
        monkeypatch.setattr(module, "measure", do)
    yield
    gc.unfreeze()
