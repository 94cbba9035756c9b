"""Streams of events for tests, and a process that follows one until it is killed.

`python streams.py FOLDER ENGINE [LINE]` follows the events of FOLDER/events; given LINE
it dies before it runs the LINE-th line of the code that writes the state.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from pathlib import Path

import evermat
from crashing_state import Fuse
from evermat.pipeline.stream import StreamReport, StreamSource, stream

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
APPLICATION = "orders"
NODES = 7


def write_events(folder: Path, files: int, *, seed: int = 1, first: int = 0) -> None:
    """Files with random events, a bad one in each."""
    chance = random.Random(seed)  # noqa: S311  no secret
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + files):
        lines = []
        for _ in range(6):
            sign = chance.choice("++-")
            values: list[object] = [
                chance.randrange(NODES),
                f"n{chance.randrange(NODES)}",
            ]
            if chance.random() < 0.5:
                values.reverse()
            lines.append({"sign": sign, "predicate": "edge", "values": values})
        bad = {"sign": "?", "predicate": "edge", "values": [number]}
        text = "\n".join(json.dumps(each) for each in [*lines, bad])
        draft = folder / f".{number:04}"
        draft.write_text(text, encoding="utf-8")
        draft.rename(folder / f"{number:04}.json")


def expected_edges(folder: Path) -> set[tuple[object, ...]]:
    """The edges after all events."""
    edges: set[tuple[object, ...]] = set()
    for file in sorted(folder.glob("*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["sign"] == "+":
                edges.add(tuple(event["values"]))
            elif event["sign"] == "-":
                edges.discard(tuple(event["values"]))
    return edges


def opened(folder: Path, engine: str) -> evermat.KnowledgeBase:
    return evermat.KnowledgeBase(RULES, engine=engine, state=folder / "state")


def follow(folder: Path, engine: str, files: int = 1) -> StreamReport:
    return stream(
        opened(folder, engine),
        StreamSource(
            "json", str(folder / "events"), {"maxFilesPerTrigger": str(files)}
        ),
        app_id=APPLICATION,
        checkpoint=folder / "checkpoint",
        feed=folder / "feed",
        dead_letters=folder / "dead",
    )


def main(folder: str, engine: str, line: str | None = None) -> None:
    opened(Path(folder), engine)
    if line is not None:
        fuse = Fuse(int(line))
        sys.settrace(fuse.trace)
        threading.settrace(fuse.trace)  # Spark calls back on a thread of its own
    follow(Path(folder), engine)


if __name__ == "__main__":
    main(*sys.argv[1:])
