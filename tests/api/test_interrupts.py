"""Signals, and lacks of memory, leave what was before or what comes after."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import evermat
from broken_off_updates import Trial, play_lines, play_moments, scenarios
from evermat.engines.embedded.cores import together
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.kb.transaction import OutOfMemoryError, TornError, TransactionError
from evermat.runtime import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCENARIOS = {scenario.name: scenario for scenario in scenarios()}
RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


class TimeIsUpError(Exception):
    """What a handler of our own raises."""


def raise_time_is_up(*_: object) -> None:
    raise TimeIsUpError


def lack_memory(*_: object, **__: object) -> None:
    raise MemoryError


def interrupt(_: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Handlers as they were, whatever a test does."""
    chosen = (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1)
    former = {number: signal.getsignal(number) for number in chosen}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in former.items():
        signal.signal(number, handler)


# ---------------------------------------------------------------- whole updates


@pytest.mark.parametrize("name", SCENARIOS)
def test_broken_off_updates_leave_what_was_or_what_comes(
    name: str, tmp_path: Path
) -> None:
    random.seed(name)
    trial = Trial(SCENARIOS[name], tmp_path)
    assert play_lines(trial, 3, memory=False)
    assert play_moments(trial, 2)
    assert play_lines(trial, 3, memory=True)
    assert trial.ends["before"]


def test_processes_without_enough_memory_lose_nothing() -> None:
    script = Path(__file__).parents[1] / "short_of_memory.py"
    command = [sys.executable, str(script), "--updates", "3", "--size", "500"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=1800
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


# ---------------------------------------------------------------------- signals


def test_what_any_handler_raises_comes_out_of_the_call() -> None:
    signal.signal(signal.SIGUSR1, raise_time_is_up)
    kb = evermat.KnowledgeBase(
        RULES, progress=lambda _: signal.raise_signal(signal.SIGUSR1)
    )
    with pytest.raises(TimeIsUpError):
        kb.insert("edge", [(1, 2)])
    assert not kb.predicates.get("edge") or not kb.count("edge")
    assert signal.getsignal(signal.SIGUSR1) is raise_time_is_up


def test_handlers_that_raise_nothing_break_nothing_off() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    kb = evermat.KnowledgeBase(
        RULES, progress=lambda _: signal.raise_signal(signal.SIGUSR1)
    )
    kb.insert("edge", [(1, 2)])
    assert kb.count("reach") == 1
    assert set(seen) == {signal.SIGUSR1}


def test_a_handler_that_replaces_itself_stays_replaced() -> None:
    def last_warning(*_: object) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    signal.signal(signal.SIGUSR1, last_warning)
    with interrupts.deferred():
        signal.raise_signal(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_data_of_users_can_be_interrupted_while_it_is_read() -> None:
    kb = evermat.KnowledgeBase(RULES)
    signal.signal(signal.SIGALRM, raise_time_is_up)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(TimeIsUpError):
        kb.insert("edge", ((n, n + 1) for n in count()))
    assert not kb.count("edge")
    kb.insert("edge", [(1, 2)])
    assert kb.count("reach") == 1


def test_an_interrupt_is_answered_once_and_not_while_it_is_undone() -> None:
    reached = []

    def work() -> None:
        with interrupts.deferred():
            interrupt(None)
            try:
                interrupts.check()
            finally:
                interrupts.check()
                reached.append("undone")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["undone"]


@pytest.mark.parametrize("guard", [interrupts.seal, interrupts.masked().__enter__])
def test_what_must_be_carried_through_is(guard: Callable[[], object]) -> None:
    reached = []

    def work() -> None:
        with interrupts.deferred():
            guard()
            interrupt(None)
            interrupts.check()
            reached.append("done")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["done"]


def test_other_threads_are_left_alone() -> None:
    kb = evermat.KnowledgeBase(RULES)
    ends: list[object] = []

    def work() -> None:
        ends.append(kb.insert("edge", [(n, n + 1) for n in range(50)]))

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        interrupt(None)
    thread.join()
    assert [type(end) for end in ends] == [evermat.Change]
    assert kb.count("edge") == 50


def test_a_transaction_that_nobody_has_is_over() -> None:
    """An interrupt may come before the `with` block is entered."""
    kb = evermat.KnowledgeBase(RULES)
    kb.transaction().__enter__()
    kb.insert("edge", [(1, 2)])
    assert kb.count("reach") == 1


def test_an_interrupted_transaction_is_over() -> None:
    kb = evermat.KnowledgeBase(RULES, progress=interrupt)
    transaction = kb.transaction()

    def work() -> None:
        with transaction as tx:
            tx.insert("edge", [(1, 2)])

    with pytest.raises(KeyboardInterrupt):
        work()
    with pytest.raises(TransactionError):
        transaction.insert("edge", [(1, 2)])
    assert not kb.count("edge")
    assert not kb.plan().predicates


# ----------------------------------------------------------------------- memory


@pytest.mark.parametrize("step", ["remove", "add", "add_explicit", "remove_explicit"])
def test_after_half_a_commit_every_call_is_refused(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = evermat.KnowledgeBase(RULES)
    kb.insert("edge", [(1, 2), (2, 3)])
    store = kb._engine.store  # type: ignore[attr-defined]  # noqa: SLF001
    monkeypatch.setattr(store, step, lack_memory)
    with pytest.raises(OutOfMemoryError):
        kb.update(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})
    calls: list[Callable[[], object]] = [
        lambda: kb.count("edge"),
        lambda: kb.query("edge(?x, ?y)"),
        lambda: kb.insert("edge", [(1, 5)]),
        lambda: kb.plan(delete={"edge": [(1, 2)]}),
        kb.materialise,
        kb.stats,
    ]
    for call in calls:
        with pytest.raises(TornError, match="make the knowledge base again"):
            call()


def test_a_commit_that_memory_did_not_follow_asks_to_open_the_state_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = evermat.KnowledgeBase(RULES, state=tmp_path / "state")
    kb.insert("edge", [(1, 2), (2, 3)])
    store = kb._engine.store  # type: ignore[attr-defined]  # noqa: SLF001
    monkeypatch.setattr(store, "add", lack_memory)
    with pytest.raises(OutOfMemoryError):
        kb.insert("edge", [(3, 4)])
    with pytest.raises(TornError, match="open the state again"):
        kb.count("edge")
    assert evermat.KnowledgeBase.open(tmp_path / "state").count("edge") == 3


def test_a_lack_of_memory_says_how_much_was_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kb = evermat.KnowledgeBase(RULES)
    kb.insert("edge", [(1, 2)])
    monkeypatch.setattr(
        EmbeddedEngine, "settle", lambda *_: np.empty(1 << 60, np.uint8)
    )
    with pytest.raises(OutOfMemoryError, match=r"1,073,741,824\.0 GiB more") as got:
        kb.insert("edge", [(2, 3)])
    assert got.value.needed == 1 << 60
    assert isinstance(got.value, MemoryError)


def test_a_lack_of_memory_while_files_are_read_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kb = evermat.KnowledgeBase(RULES)
    monkeypatch.setattr("evermat.kb.requests.read_rdf", lack_memory)
    with pytest.raises(OutOfMemoryError):
        kb.load({"edge": [(1, 2)]}, rdf=tmp_path / "a.ttl")
    assert not kb.count("edge")


def test_indexes_are_made_anew_after_errors_that_nobody_foresaw() -> None:
    """A fact whose row is missing in an index would be given another row."""
    kb = evermat.KnowledgeBase(RULES, modules=False)
    kb.insert("edge", [(n, n + 1) for n in range(40)])
    before = sorted(kb.counters("reach"))
    engine: Any = kb._engine  # noqa: SLF001
    for relation in engine.store.relations.values():
        relation.primary.runs = relation.primary.runs[:-1]
        relation.status[: relation.count] |= 1 << 9
    engine.recover()
    assert sorted(kb.counters("reach")) == before
    kb.insert("edge", [(3, 4), (40, 41)])
    kb.delete("edge", [(40, 41)])
    assert sorted(kb.counters("reach")) == before


def test_sets_give_their_bit_back_once() -> None:
    """The garbage collector may have been there before."""
    engine = EmbeddedEngine()
    sets = engine.store.sets
    free = list(sets._free)  # noqa: SLF001
    growing = engine.growing()
    growing.release()
    growing.release()
    assert sets._free == free  # noqa: SLF001


def test_no_core_is_at_work_any_more_when_another_one_has_failed() -> None:
    is_begun, is_done = threading.Event(), threading.Event()

    def work() -> None:
        is_begun.set()
        threading.Event().wait(0.1)
        is_done.set()

    def fail() -> None:
        is_begun.wait()
        raise TimeIsUpError

    with pytest.raises(TimeIsUpError):
        together([fail, work])
    assert is_done.is_set()
