"""The suite `aggregates`: groups, parts lists, shortest paths and company control.

Materialising means deriving everything again from loaded facts. It is compared with
`GROUP BY` in DuckDB on the same Arrow table, and with Dijkstra's algorithm with a
binary heap in Numba. Updates are compared with rematerialisation in the same process.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evermat.api import KnowledgeBase
from evermat.bench.peers import ground
from evermat.bench.processes import say
from evermat.bench.report import Table, count_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection

    import numpy.typing as npt

    from evermat.bench.processes import Options

    Heap = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

SMALL, LARGE = 20, 5
"""Number of measured updates of one fact, and of a thousand facts."""

_LEVELS = 5

GROUP_RULES = """
total(?g, ?n) :- ?n = sum{ ?v, ?k : row(?g, ?k, ?v) } .
size(?g, ?n) :- ?n = count{ ?k, ?v : row(?g, ?k, ?v) } .
least(?g, ?n) :- ?n = min{ ?v, ?k : row(?g, ?k, ?v) } .
most(?g, ?n) :- ?n = max{ ?v, ?k : row(?g, ?k, ?v) } .
"""
PATH_RULES = """
way(?y, 0) :- source(?y) .
way(?y, ?c + ?w) :- distance(?x, ?c), road(?x, ?y, ?w) .
distance(?y, ?c) :- ?c = min{ ?d : way(?y, ?d) } .
"""
CONTROL_RULES = """
holds(?x, ?x, ?y, ?s) :- share(?x, ?y, ?s) .
holds(?x, ?z, ?y, ?s) :- controls(?x, ?z), share(?z, ?y, ?s) .
controls(?x, ?y) :- sum{ ?s, ?z : holds(?x, ?z, ?y, ?s) } > 50 .
"""
PARTS_ASP = """
cost{at}(X, T) :- needs{at}(X, _, _),
    T = #sum{{ Q * C, Y : needs{at}(X, Y, Q), cost{below}(Y, C) }}.
"""
CONTROL_ASP = """
holds(X, X, Y, S) :- share(X, Y, S).
holds(X, Z, Y, S) :- controls(X, Z), share(Z, Y, S).
controls(X, Y) :- holds(X, _, Y, _), #sum{ S, Z : holds(X, Z, Y, S) } > 50.
"""


@dataclass(slots=True)
class Workload:
    """Rules and facts, and the predicate whose facts change.

    Attributes:
        updates: the number of facts that each kind of update deletes and inserts.
        asp: the rules in clingo's language, where it has a finite grounding.
    """

    rules: str
    facts: Mapping[str, pa.Table]
    changing: str
    updates: tuple[int, ...] = (1, 1000)
    asp: str = ""


@dataclass(slots=True)
class Figures:
    """Times by workload and step, each as elapsed and as processor time."""

    facts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)


def groups(scale: float) -> Workload:
    """10 M facts in 100 k groups."""
    size = max(1000, round(10_000_000 * scale))
    chance = np.random.default_rng(1)
    table = pa.table(
        {
            "g": chance.integers(0, max(1, size // 100), size),
            "k": np.arange(size),
            "v": chance.integers(-1000, 100_000, size),
        }
    )
    return Workload(GROUP_RULES, {"row": table}, "row")


def parts(scale: float) -> Workload:
    """Return a parts list of five levels: the cost of a part is a sum of products."""
    size = max(100, round(1_000_000 * scale) // _LEVELS)
    chance = np.random.default_rng(2)
    count = max(10, size // 5)
    facts = {"cost0": pa.table([np.arange(count), chance.integers(1, 9, count)], "pc")}
    rules = []
    for level in range(1, _LEVELS + 1):
        wholes = chance.integers(0, count, size) + level * count
        below = chance.integers(0, count, size) + (level - 1) * count
        amounts = chance.integers(1, 4, size)
        facts[f"needs{level}"] = _distinct(wholes, below, amounts)
        rules.append(
            f"cost{level}(?x, ?t) :- ?t = sum{{ ?q * ?c, ?y : "
            f"needs{level}(?x, ?y, ?q), cost{level - 1}(?y, ?c) }} ."
        )
    levels = range(1, _LEVELS + 1)
    asp = "".join(PARTS_ASP.format(at=at, below=at - 1) for at in levels)
    return Workload("\n".join(rules), facts, "needs1", (1,), asp)


def paths(scale: float) -> Workload:
    """A graph of 100 k nodes and 1 M weighted edges with cycles."""
    size = max(10, round(100_000 * scale))
    chance = np.random.default_rng(3)
    ends = chance.integers(0, size, (2, 10 * size))
    table = _distinct(ends[0], ends[1], chance.integers(1, 100, 10 * size))
    return Workload(
        PATH_RULES, {"road": table, "source": pa.table({"x": [0]})}, "road", (1, 100)
    )


def control(scale: float) -> Workload:
    """200 k companies and 600 k shares; few companies own most of them."""
    size = max(10, round(200_000 * scale))
    chance = np.random.default_rng(4)
    owners = (size * chance.random(3 * size) ** 3).astype(np.int64)
    owned = np.repeat(np.arange(size), 3)
    cuts = np.sort(chance.integers(1, 100, (size, 2)), axis=1)
    percent = np.column_stack([cuts[:, 0], cuts[:, 1] - cuts[:, 0], 100 - cuts[:, 1]])
    table = _distinct(owners, owned, np.maximum(percent, 1).ravel())
    return Workload(CONTROL_RULES, {"share": table}, "share", (1,), CONTROL_ASP)


def _distinct(
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    value: npt.NDArray[np.int64],
) -> pa.Table:
    """Return rows with one value for each pair."""
    table = pa.table([first, second, value], ["x", "y", "v"])
    found = table.group_by(["x", "y"], use_threads=False).aggregate([("v", "max")])
    return found.select(["x", "y", "v_max"])


WORKLOADS: dict[str, Callable[[float], Workload]] = {
    "groups": groups,
    "parts": parts,
    "paths": paths,
    "control": control,
}
NAMES = tuple(WORKLOADS)


def run(options: Options) -> Figures:
    """Measure all workloads."""
    figures = Figures()
    for name, make in WORKLOADS.items():
        if not options.only or name in options.only:
            _measure(name, make(options.scale), options, figures)
    return figures


def _measure(name: str, workload: Workload, options: Options, figures: Figures) -> None:
    say(f"{name} …")
    steps = figures.seconds[name] = {}
    figures.facts[name] = sum(table.num_rows for table in workload.facts.values())
    kb = KnowledgeBase(workload.rules)
    kb.load(workload.facts)
    again = partial(kb.update, algorithm="remat")
    steps["materialise"] = _median(again, options.repeat)
    table, changing = workload.facts[workload.changing], workload.changing
    place = 0
    for size in workload.updates:
        times: dict[str, list[tuple[float, float]]] = {"out": [], "in": []}
        for number in range(1 + (SMALL if size == 1 else LARGE)):
            rows = table.slice(place, size)
            place += size
            out = _timed(partial(kb.delete, changing, rows))
            back = _timed(partial(kb.insert, changing, rows))
            if number:  # the first ones fill caches for the others
                times["out"].append(out)
                times["in"].append(back)
        for way, found in times.items():
            steps[f"{size:,} {way}"] = (
                median(each[0] for each in found),
                median(each[1] for each in found),
            )
    del kb, again
    gc.collect()
    if options.peers:
        steps |= _of_others(name, workload, table, options)


def _of_others(
    name: str, workload: Workload, table: pa.Table, options: Options
) -> dict[str, tuple[float, float]]:
    """The same work by others, where they can do it."""
    if name == "groups" and find_spec("duckdb") is not None:
        return {"DuckDB, `GROUP BY`": _group_by(table, options.repeat)}
    if name == "paths":
        return {"Dijkstra in Numba": _shortest_paths(table, options.repeat)}
    if workload.asp and find_spec("clingo") is not None:
        found = _grounded(workload, options.time_limit)
        return {} if found is None else {"clingo, grounding": found}
    return {}


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    start, used = perf_counter(), process_time()
    work()
    return perf_counter() - start, process_time() - used


def _median(work: Callable[[], object], repeat: int) -> tuple[float, float]:
    found = [_timed(work) for _ in range(repeat)]
    return median(each[0] for each in found), median(each[1] for each in found)


def _grounded(workload: Workload, time_limit: float) -> tuple[float, float] | None:
    """How long clingo grounds rules, loading apart; None beyond the time limit."""
    spawn = get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(
        target=_ground, args=(workload.facts, workload.asp, there), daemon=True
    )
    process.start()
    there.close()  # so that its end is told if the process dies
    found = None
    with suppress(EOFError):
        found = here.recv() if here.poll(time_limit) else None
    process.kill()
    process.join()
    return found


def _ground(facts: Mapping[str, pa.Table], rules: str, there: Connection) -> None:
    result = ground(facts, rules)
    there.send((result.seconds, result.used))


def _group_by(table: pa.Table, repeat: int) -> tuple[float, float]:
    import duckdb  # noqa: PLC0415  an optional dependency

    with duckdb.connect() as connection:
        connection.register("arrow_rows", table)
        connection.execute("create table rows as select * from arrow_rows")
        query = "select g, sum(v), count(*), min(v), max(v) from rows group by g"
        return _median(
            lambda: connection.execute(f"create or replace table found as {query}"),
            repeat,
        )


def _shortest_paths(table: pa.Table, repeat: int) -> tuple[float, float]:
    columns = [table.column(at).to_numpy() for at in range(3)]
    order = np.argsort(columns[0], kind="stable")
    sources, targets, weights = (column[order] for column in columns)
    nodes = int(max(sources.max(), targets.max())) + 1
    starts = np.searchsorted(sources, np.arange(nodes + 1))
    search = _dijkstra()
    search(starts, targets, weights)
    return _median(lambda: search(starts, targets, weights), repeat)


def _dijkstra() -> Callable[..., object]:
    """Return Dijkstra's algorithm from node 0, compiled."""
    from heapq import heappop, heappush  # noqa: PLC0415  only compiled

    from numba import njit  # noqa: PLC0415  takes long to import

    @njit
    def search(starts: Any, targets: Any, weights: Any) -> Any:  # noqa: ANN401  arrays
        far = np.full(starts.size - 1, 1 << 62)
        far[0] = 0
        heap = [(0, 0)]
        while heap:
            distance, node = heappop(heap)
            if distance > far[node]:
                continue
            for at in range(starts[node], starts[node + 1]):
                longer = distance + weights[at]
                if longer < far[targets[at]]:
                    far[targets[at]] = longer
                    heappush(heap, (longer, targets[at]))
        return far

    return search


def tables(figures: Figures, options: Options) -> list[Table]:
    """Return the figures, a table for each workload."""
    del options
    found = []
    for name, steps in figures.seconds.items():
        again = steps["materialise"]
        rows = tuple(
            (
                step,
                seconds_text(seconds),
                seconds_text(used),
                f"{again[0] / seconds:,.1f}×",
                f"{again[1] / max(used, 1e-6):,.1f}×",
            )
            for step, (seconds, used) in steps.items()
        )
        found.append(
            Table(
                f"{name}: {count_text(figures.facts[name])} facts",
                (
                    "",
                    "seconds",
                    "processor time",
                    "times faster than materialising",
                    "by processor time",
                ),
                rows,
                ("Medians; “in” and “out” are insertions and deletions of facts.",),
            )
        )
    return found
