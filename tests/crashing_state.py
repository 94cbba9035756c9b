"""Processes that update a state and are killed in the middle of it.

`python crashing_state.py PATH ENGINE` updates a state until somebody kills it; given a
LINE it kills itself, without any chance to clean up, before it runs the LINE-th line of
the code that writes states. `python crashing_state.py PATH ENGINE survey POINTS` has
many such processes die, at points all over an update, and reports what each has left.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evermat
import evermat.api
import evermat.engines.embedded.engine
import evermat.kb.persistence
import evermat.lake

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
MERGING = RULES + "?x ≈ ?y :- email(?x, ?a), email(?y, ?a) ."
"""The same, and both ends of the path are the same: a cycle by equality."""
SIZE = 12
APPLICATION = "crash"


def update(kb: evermat.KnowledgeBase, number: int) -> None:
    """An update that moves everything: the old path of edges goes, a new one comes."""
    old = [(f"{number - 1}/{at}", f"{number - 1}/{at + 1}") for at in range(SIZE)]
    new = [(f"{number}/{at}", f"{number}/{at + 1}") for at in range(SIZE)]
    delete, insert = {"edge": old}, {"edge": new, "mark": [(number,)]}
    if "email" in kb.predicates:
        delete["email"], insert["email"] = ends(number - 1), ends(number)
    kb.update(delete=delete, insert=insert, batch=(APPLICATION, number))


def ends(number: int) -> list[tuple[str, str]]:
    """Both ends of a path have the same address."""
    return [(f"{number}/0", "a"), (f"{number}/{SIZE}", "a")]


def is_whole(kb: evermat.KnowledgeBase) -> bool:
    """Whether the facts are those of one update, and of no other."""
    number = kb.last_batch(APPLICATION)
    if "email" in kb.predicates:
        return is_one_cycle(kb, number)
    edges = {(f"{number}/{at}", f"{number}/{at + 1}") for at in range(SIZE)}
    reached = list(kb.facts("reach"))
    return (
        set(kb.facts("edge")) == edges
        and len(reached) == SIZE * (SIZE + 1) // 2
        and all(str(row[0]).startswith(f"{number}/") for row in reached)
        and kb.count("mark") == number
        and sum(map(int, kb.counters("reach").to_arrow()["c_r"].to_pylist()))
        == len(reached) - SIZE
    )


def is_one_cycle(kb: evermat.KnowledgeBase, number: int | None) -> bool:
    """The same where both ends of the path are one thing with two names."""
    names = {f"{number}/{at}" for at in range(SIZE + 1)}
    both = {f"{number}/0", f"{number}/{SIZE}"}
    return (
        {row[0] for row in kb.representatives()} == both
        and set(kb.facts("reach")) == {(x, y) for x in names for y in names}
        and kb.count("edge") == SIZE + 2
        and len(set(kb.facts("edge", "explicit"))) == SIZE
        and kb.count("mark") == number
    )


class Fuse:
    """Counts the lines that are run in the package of states."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.run = 0
        self.folder = str(Path(evermat.lake.__file__).parent)

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if not frame.f_code.co_filename.startswith(self.folder):
            return None
        if event == "line":
            self.run += 1
            if self.run == self.lines:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.trace


def say(*what: object) -> None:
    print(*what, flush=True)  # noqa: T201  the other side waits for it


def work(place: str, engine: str, lines: int = -1, updates: int = -1) -> None:
    """Update a state until the process dies."""
    kb = evermat.KnowledgeBase.open(place, engine=engine)
    say("open")
    fuse = Fuse(lines)
    sys.settrace(fuse.trace)
    number = kb.last_batch(APPLICATION) or 0
    while updates:
        number += 1
        updates -= 1
        update(kb, number)
        say("done", number)
    sys.settrace(None)
    say("lines", fuse.run)


def inspect(place: str, engine: str) -> None:
    kb = evermat.KnowledgeBase.open(place, engine=engine)
    say("left", kb.last_batch(APPLICATION), is_whole(kb))


def in_a_child(task: Callable[[], None]) -> None:
    """Run a task in a process of its own, which need not load everything again."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        task()
    finally:
        os._exit(0)


LINES = 1800
"""An update runs about two thirds of so many lines, and the next one begins."""


def survey(place: str, engine: str, points: int) -> None:
    for point in range(points):
        at = 1 + point * LINES // points
        in_a_child(lambda at=at: work(place, engine, at))  # type: ignore[misc]
        in_a_child(lambda: inspect(place, engine))


def main(place: str, engine: str, *more: str) -> None:
    match more:
        case ["survey", points]:
            survey(place, engine, int(points))
        case [lines]:
            work(place, engine, int(lines))
        case _:
            work(place, engine)


if __name__ == "__main__":
    main(*sys.argv[1:])
