"""Readers see one version, never wait for an update, and find what was confirmed."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from evermat import KnowledgeBase
from evermat.server.errors import BusyError
from evermat.server.limits import CostLimit, Limits
from evermat.server.service import Service
from served import client_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each version has one stamp, and both sides have it.
RULES = """
both(?n) :- left(?n), right(?n) .
odd(?n) :- left(?n), not right(?n) .
odd(?n) :- right(?n), not left(?n) .
"""


def stamped(engine: str = "reference") -> KnowledgeBase:
    kb = KnowledgeBase(RULES, engine=engine)
    kb.load({"left": [(0,)], "right": [(0,)]})
    return kb


def next_stamp(kb: KnowledgeBase) -> Mapping[str, object]:
    ((number,),) = kb["left"]
    assert isinstance(number, int)
    rows = [(number + 1,)]
    return {"replace": {"left": rows, "right": rows}}


def test_readers_see_whole_versions_and_what_was_confirmed() -> None:
    service = Service(stamped())
    confirmed = [0]
    ended = threading.Event()

    def read(seed: int) -> int:
        wait = random.Random(seed)  # noqa: S311  no secret
        count = 0
        while not ended.is_set() or not count:
            least = confirmed[0]
            with service.reading() as view:
                ((left,),) = view.kb["left"]
                ended.wait(wait.random() / 500)
                ((right,),) = view.kb["right"]
                both = view.kb["both"].to_list()
                assert left == right == view.version >= least
                assert both == [(left,)]
                assert not len(view.kb["odd"])
            count += 1
        return count

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read, seed) for seed in range(5)]
        try:
            for number in range(1, 60):
                made = service.update(next_stamp, CostLimit(Limits()))
                assert made.version == number
                confirmed[0] = number
        finally:
            ended.set()
        assert all(reader.result() for reader in readers)
    service.close()


def test_readers_do_not_wait_for_an_update_or_a_dry_run() -> None:
    service = Service(stamped())
    begun, go_on = threading.Event(), threading.Event()

    def slow(kb: KnowledgeBase) -> Mapping[str, object]:
        begun.set()
        assert go_on.wait(30)
        return next_stamp(kb)

    def planned(kb: KnowledgeBase) -> object:
        with kb.turn:
            return slow(kb)

    for work in (
        lambda: service.update(slow, CostLimit(Limits())),
        lambda: service.plan(planned, CostLimit(Limits())),
    ):
        begun.clear()
        go_on.clear()
        before = service.replicas.version
        writer = threading.Thread(target=work)
        writer.start()
        assert begun.wait(30)
        with service.reading() as view, CostLimit(Limits(seconds=5)).turn(view.kb):
            assert view.version == before
            assert view.kb["left"].to_list() == [(before,)]
        go_on.set()
        writer.join()
    service.close()


def test_a_view_stays_while_updates_are_made() -> None:
    service = Service(stamped())
    with service.reading() as old:
        first = service.update(next_stamp, CostLimit(Limits()))
        assert first.version == 1
        with service.reading() as new:
            assert new.kb["left"].to_list() == [(1,)]
        assert old.kb["left"].to_list() == [(0,)]
    service.close()


def test_an_update_whose_turn_does_not_come_is_refused_and_not_made() -> None:
    service = Service(stamped())
    begun, go_on = threading.Event(), threading.Event()

    def slow(kb: KnowledgeBase) -> Mapping[str, object]:
        begun.set()
        assert go_on.wait(30)
        return next_stamp(kb)

    writer = threading.Thread(target=lambda: service.update(slow, CostLimit(Limits())))
    writer.start()
    assert begun.wait(30)
    with pytest.raises(BusyError, match="did not come within"):
        service.update(next_stamp, CostLimit(Limits(seconds=0.05)))
    go_on.set()
    writer.join()
    service.close()
    with service.reading() as view:
        assert view.kb["left"].to_list() == [(1,)]


def test_a_failed_update_changes_neither_copy() -> None:
    with client_of(stamped()) as client:
        for _ in range(3):
            wrong = {"insert": {"left": [[5]]}, "add_rules": "p(?x) :- q(?y) ."}
            assert client.post("/api/update", json=wrong).status_code == 422
            found = client.get("/api/facts?predicate=left").json()
            assert found["rows"] == [[found["version"]]]
            stamp = [[found["version"] + 1]]
            body = {"replace": {"left": stamp, "right": stamp}}
            assert client.post("/api/update", json=body).status_code == 200


def test_a_second_copy_that_cannot_follow_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service(stamped())
    update = KnowledgeBase.update
    calls: list[Any] = []

    def fails_once(self: KnowledgeBase, **arguments: Any) -> object:
        calls.append(self)
        if len(calls) == 2:  # the repetition
            raise MemoryError
        return update(self, **arguments)

    monkeypatch.setattr(KnowledgeBase, "update", fails_once)
    for number in (1, 2, 3):
        assert service.update(next_stamp, CostLimit(Limits())).version == number
        with service.reading() as view:
            assert view.kb["left"].to_list() == [(number,)]
    assert len(set(map(id, calls))) == 3
    service.close()
