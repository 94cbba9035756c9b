"""Updates in processes that are not allowed the memory they need.

`python tests/short_of_memory.py --updates 200` makes a knowledge base, and then again
and again allows a copy of the process a random amount of memory beyond what it has, has
it carry out a large update, and looks at what is left: what was there before, or what
the update makes of it, or a knowledge base that refuses to answer. A process that ends
otherwise, or an error that is none of ours, is a mistake.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import traceback
from collections import Counter
from typing import Any

import evermat
from evermat.kb.transaction import OutOfMemoryError, TornError
from evermat.maintenance.limits import resident_memory

RULES = """
    pair(?x, ?y) :- left(?x), right(?y) .
    next(?x, ?z) :- pair(?x, ?y), step(?y, ?z) .
    reach(?x, ?y) :- step(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), step(?y, ?z) .
    wide(?x, ?y, ?z) :- pair(?x, ?y), step(?y, ?z) .
"""
RIGHT, WRONG, REFUSED, FITTED = 0, 3, 4, 5
ENDS = {RIGHT: "rolled back", REFUSED: "refused", FITTED: "fitted"}


def made(settings: dict[str, Any]) -> evermat.KnowledgeBase:
    """A knowledge base, small, in which everything has been used once."""
    kb = evermat.KnowledgeBase(RULES, **settings)
    kb.load(
        {
            "left": [(n,) for n in range(50)],
            "right": [(n,) for n in range(40)],
            "step": [(n, n + 1) for n in range(60)],
        }
    )
    change(kb, 100)
    kb.update(delete=rows(100))
    return kb


def rows(size: int) -> dict[str, list[tuple[int, ...]]]:
    """What is inserted, and makes size² facts and more."""
    return {
        "left": [(n,) for n in range(1000, 1000 + size)],
        "right": [(n,) for n in range(1000, 1000 + size)],
        "step": [(n, n + 1) for n in range(1000, 1000 + size // 10)],
    }


def change(kb: evermat.KnowledgeBase, size: int) -> None:
    """A large update."""
    kb.update(insert=rows(size))


def sizes(kb: evermat.KnowledgeBase) -> dict[str, int]:
    """How many facts there are."""
    return {name: kb.count(name) for name in kb.predicates}


def play(kb: evermat.KnowledgeBase, size: int, extra: int) -> int:
    """Carry the update out with so much memory, in this process; how it ends."""
    before = sizes(kb)
    sample = sorted(kb.facts("reach"))
    used = int(open("/proc/self/statm").read().split()[0]) * 4096  # noqa: PTH123, SIM115
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, resource.RLIM_INFINITY))
    end = FITTED
    try:
        change(kb, size)
    except OutOfMemoryError:
        end = RIGHT
    finally:
        resource.setrlimit(
            resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
    try:
        found = sizes(kb)
    except TornError:
        return REFUSED
    if end == FITTED:
        kb.update(delete=rows(size))
        found = sizes(kb)
    if found != before or sorted(kb.facts("reach")) != sample:
        return WRONG
    change(kb, 30)
    kb.update(delete=rows(30))
    return end if sizes(kb) == before else WRONG


def main() -> None:
    """Play again and again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--size", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    # Threads do not survive a fork.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ends: Counter[str] = Counter()
    every: list[dict[str, Any]] = [{}, {"modules": False}, {"counters": False}]
    for settings in every:
        kb = made(settings)
        for _ in range(options.updates // 3):
            extra = int(10 ** random.uniform(5, 9))  # noqa: S311  no secret
            child = os.fork()
            if child == 0:
                try:
                    os._exit(play(kb, options.size, extra))
                except BaseException:  # noqa: BLE001  whatever it is, it is wrong
                    traceback.print_exc()
                    os._exit(WRONG)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            ends[ENDS.get(code, f"WRONG: {code}")] += 1
            if code not in ENDS:
                print(f"{settings}, {extra:,} bytes: {code}", flush=True)  # noqa: T201
    print(dict(ends), f"{resident_memory():,} bytes")  # noqa: T201
    if any(end.startswith("WRONG") for end in ends):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
