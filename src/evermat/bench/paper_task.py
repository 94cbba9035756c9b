"""The task of a process that measures one row of a paper's tables.

Each way of the row has a knowledge base of its own, in turn, and figures are reported
immediately: a row that is stopped at its time limit keeps those it has. Times are
processor times, as other work on the machine can only add to them.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from statistics import fmean
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evermat.algebra import ClosureKind
from evermat.api import KnowledgeBase
from evermat.bench.generators.graphs import NONLINEAR_CLOSURE, backward_work
from evermat.bench.generators.problem import Problem, divided, sample
from evermat.engines import make_engine
from evermat.maintenance.modules import ClosureModule, find_modules
from evermat.maintenance.rules import RuleBook, compile_book

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evermat.results.change import Change

    Rows = Mapping[str, pa.Table]
    Tell = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Way:
    """An algorithm, and the settings that it is measured with.

    Attributes:
        name: its name in records and tables.
        algorithm: the algorithm of its updates.
        settings: the settings of the knowledge base.
    """

    name: str
    algorithm: str
    settings: Mapping[str, Any]


PLAIN = {"modules": False, "equality": "off"}

COUNTING_WAYS = (
    Way("dred-c", "dred-c", PLAIN | {"counters": True}),
    Way("bf-c", "bf-c", PLAIN | {"counters": "nonrecursive"}),
    Way("bf", "bf", PLAIN | {"counters": False}),
    Way("dred", "dred", PLAIN | {"counters": False}),
    Way("default", "auto", {"equality": "off"}),
)
"""As in the paper: no counters for algorithms that have none, no modules."""

REMAT_WAYS = (
    Way("remat-0", "remat", PLAIN | {"counters": False}),
    Way("remat-1", "remat", PLAIN | {"counters": "nonrecursive"}),
    Way("remat-2", "remat", PLAIN | {"counters": True}),
)

UPDATE_AGAIN = Way("again", "remat", {"equality": "off"})
"""Rematerialising as an update: the old facts are compared with the new ones."""

MODULE_WAYS = (
    Way("on", "dred-c", {"equality": "off"}),
    Way("default", "auto", {"equality": "off"}),
    Way("off", "dred-c", PLAIN),
)

EQUALITY_WAYS = (
    Way("rewrite bf", "bf", {"equality": "rewrite", "counters": False}),
    Way("default", "auto", {}),
    Way("rewrite remat", "remat", {"equality": "rewrite", "counters": False}),
    Way("axioms bf", "bf", {"equality": "axioms", "counters": False, "modules": False}),
    Way(
        "axioms remat",
        "remat",
        {"equality": "axioms", "counters": False, "modules": False},
    ),
)

RULE_WAYS = (
    *COUNTING_WAYS,
    Way("fp", "fp", PLAIN | {"counters": False}),
    Way("remat", "remat", PLAIN | {"counters": False}),
)


def loaded(problem: Problem, way: Way) -> tuple[KnowledgeBase, dict[str, Any]]:
    """Return a knowledge base with all facts of a problem, and the cost of loading."""
    engine = make_engine("embedded")
    base = KnowledgeBase(problem.rules, engine=engine, **way.settings)
    gc.collect()
    start = process_time()
    report = base.load(problem.facts).report
    stats = base.stats()
    return base, {
        "seconds": process_time() - start,
        "instances": report.forward_instances,
        "explicit": problem.size,
        "facts": stats["facts"],
        "bytes": sum(each["bytes"] for each in engine.statistics().values()),
    }


def timed(base: KnowledgeBase, algorithm: str, **change: Any) -> dict[str, Any]:  # noqa: ANN401  as `update` has it
    """Return the time of one update, and the number of instances it matched."""
    gc.collect()
    start = process_time()
    done: Change = base.update(**change, algorithm=algorithm)
    seconds = process_time() - start
    report = done.report
    return {
        "seconds": seconds,
        "instances": report.forward_instances + report.backward_instances,
        "removed": report.removed,
        "added": report.added,
        "algorithm": report.algorithm,
    }


def least_of(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fastest of some equal updates: other work only adds to times."""
    return dict(min(records, key=lambda record: float(record["seconds"])))


def mean_of(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means of the numbers of some updates, and the range of times."""
    times = [record["seconds"] for record in records]
    return {
        **{
            name: fmean(record[name] for record in records)
            for name in ("seconds", "instances", "removed", "added")
        },
        "best": min(times),
        "worst": max(times),
        "algorithm": records[-1]["algorithm"],
    }


# ------------------------------------------------------------------ small deletions


def small_deletions(problem: Problem, task: Mapping[str, Any], tell: Tell) -> None:
    """Delete samples of facts in every way, and insert them again (000, Table 1)."""
    tell("counted", **rule_counts(problem))
    samples = [sample(problem, task["count"], seed=n) for n in range(task["samples"])]
    bases = []
    for way in COUNTING_WAYS:
        base, size = loaded(problem, way)
        tell("loaded", way=way.name, **size)
        bases.append((base, way))
    for name, (there, _) in _delete_and_restore(bases, samples).items():
        tell("deleted", way=name, **there)


_TURNS = 2
"""Number of measurements of an update; the minimum counts, as other work only adds."""


def _delete_and_restore(
    bases: Sequence[tuple[KnowledgeBase, Way]], samples: Sequence[Rows]
) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Delete samples and put them back, all ways in turn, when they are warm."""
    there: dict[str, list[dict[str, Any]]] = {way.name: [] for _, way in bases}
    back: dict[str, list[dict[str, Any]]] = {way.name: [] for _, way in bases}
    for base, way in bases:
        _warm(base, way, samples[0])
    for rows in samples:
        for base, way in bases:
            pairs = [
                (
                    timed(base, way.algorithm, delete=rows),
                    timed(base, way.algorithm, insert=rows),
                )
                for _ in range(_TURNS)
            ]
            deleted, inserted = zip(*pairs, strict=True)
            there[way.name].append(least_of(deleted))
            back[way.name].append(least_of(inserted))
    return {name: (mean_of(there[name]), mean_of(back[name])) for name in there}


def _warm(base: KnowledgeBase, way: Way, rows: Rows) -> None:
    """Build the indexes and plans that all updates use."""
    base.update(delete=rows, algorithm=way.algorithm)
    base.update(insert=rows, algorithm=way.algorithm)


def rule_counts(problem: Problem) -> dict[str, int]:
    """Return the numbers of strata, of rules of each kind, and of closure modules."""
    rules = KnowledgeBase(problem.rules, equality="off").rules
    book, _ = RuleBook().change(remove=(), add=rules)
    compiled = compile_book(book, find_modules)
    names = [type(module).__name__ for module in compiled.modules]
    return {
        "strata": len(compiled.all_plans),
        "nonrecursive": sum(len(p.nonrecursive.rules) for p in compiled.all_plans),
        "recursive": sum(len(p.recursive.rules) for p in compiled.all_plans),
        "modules": len(names),
        "symmetric": sum(
            module.closure.kind is ClosureKind.SYMMETRIC
            for module in compiled.modules
            if isinstance(module, ClosureModule)
        ),
    }


# ------------------------------------------------------------------ large deletions

_LEAST, _MOST = 0.005, 0.9
_STEPS = 5
"""Number of halvings of the range in which the equilibrium is searched."""


def large_deletions(problem: Problem, task: Mapping[str, Any], tell: Tell) -> None:
    """Find the equilibrium, and delete that many facts in every way (000, Table 2)."""
    share = equilibrium(problem, COUNTING_WAYS[:2], REMAT_WAYS[0], task["count"])
    tell("equilibrium", percent=100 * share)
    rows, left = divided(problem, round(share * problem.size), seed=0)
    for way in REMAT_WAYS:
        _, first = loaded(left, way)
        _, size = loaded(left, way)
        size["seconds"] = min(size["seconds"], first["seconds"])
        tell("deleted", way=way.name, **size)
    few = sample(problem, task["count"], seed=0)
    for way in (*COUNTING_WAYS, UPDATE_AGAIN):
        turns = []
        for _ in range(_TURNS):
            base, _ = loaded(problem, way)
            _warm(base, way, few)
            turns.append(timed(base, way.algorithm, delete=rows))
        tell("deleted", way=way.name, **least_of(turns))


def equilibrium(
    problem: Problem, ways: Sequence[Way], remat: Way, few: int = 100
) -> float:
    """Return the share of the facts whose deletion costs as much as rematerialising.

    The search halves the logarithm of a range: deleting more costs more, and
    rematerialising the remaining facts costs less.
    """
    low, high = _LEAST, _MOST
    bases = [(loaded(problem, way)[0], way) for way in ways]
    for base, way in bases:
        _warm(base, way, sample(problem, few, seed=0))
    for _ in range(_STEPS):
        share = (low * high) ** 0.5
        rows, left = divided(problem, max(1, round(share * problem.size)), seed=1)
        best = min(_deleting(base, way, rows) for base, way in bases)
        anew = min(float(loaded(left, remat)[1]["seconds"]) for _ in range(_TURNS))
        low, high = (share, high) if best < anew else (low, share)
    return float((low * high) ** 0.5)


def _deleting(base: KnowledgeBase, way: Way, rows: Rows) -> float:
    turns = []
    for _ in range(_TURNS):
        turns.append(timed(base, way.algorithm, delete=rows))
        base.update(insert=rows)
    return float(least_of(turns)["seconds"])


# ---------------------------------------------------------------------- equality

_SHARES = (0.25, 0.5, 0.75, 1.0)


def equality(problem: Problem, task: Mapping[str, Any], tell: Tell) -> None:
    """Delete growing parts of the facts in the four ways of 001, Table 1."""
    first, *others = EQUALITY_WAYS
    remat = EQUALITY_WAYS[2]
    point = equilibrium(problem, (first,), remat, task["count"])
    tell("equilibrium", count=round(point * problem.size))
    counts = [100, *(round(share * point * problem.size) for share in _SHARES)]
    updates = [(n, sample(problem, max(1, n), seed=n)) for n in sorted(set(counts))]
    for way in (first, *others):
        if way.name.startswith("axioms") and not task["axioms"]:
            continue
        found: dict[int, list[dict[str, Any]]] = {count: [] for count, _ in updates}
        sizes = []
        for _ in range(_TURNS):
            base, size = loaded(problem, way)
            sizes.append(size)
            _warm(base, way, updates[0][1])
            for count, rows in updates:
                found[count].append(timed(base, way.algorithm, delete=rows))
                base.update(insert=rows)
        tell("loaded", way=way.name, **least_of(sizes))
        for count, turns in found.items():
            tell("deleted", way=way.name, count=count, **least_of(turns))


# ----------------------------------------------------------------------- modules


def modules(problem: Problem, task: Mapping[str, Any], tell: Tell) -> None:
    """Materialise, delete and insert with modules and without (003)."""
    tell("counted", **rule_counts(problem))
    samples = [sample(problem, task["count"], seed=n) for n in range(task["samples"])]
    quarter = sample(problem, problem.size // 4, seed=99)
    bases = []
    for way in MODULE_WAYS:
        turns = [loaded(problem, way) for _ in range(_TURNS)]
        tell("loaded", way=way.name, **least_of([size for _, size in turns]))
        bases.append((way, [base for base, _ in turns]))
    firsts = [(first, way) for way, (first, *_) in bases]
    for name, (there, back) in _delete_and_restore(firsts, samples).items():
        tell("deleted", way=name, **there)
        tell("inserted", way=name, **back)
    for way, mine in bases:
        for base in mine[1:]:
            _warm(base, way, samples[0])
        tell(
            "large",
            way=way.name,
            **least_of([timed(base, way.algorithm, delete=quarter) for base in mine]),
        )


# ------------------------------------------------------------------------- rules


def rules(problem: Problem, task: Mapping[str, Any], tell: Tell) -> None:
    """Remove and add some of the rules, in every way."""
    lines = problem.rules.splitlines()
    head = "\n".join(line for line in lines if line.startswith("@"))
    own = [line for line in lines if not line.startswith("@")]
    for way in RULE_WAYS:
        base, size = loaded(problem, way)
        tell("loaded", way=way.name, rules=len(own), **size)
        for count in task["counts"]:
            some = "\n".join([head, *_spread(own, count)])
            for turn in range(2):
                removed = timed(base, way.algorithm, remove_rules=some)
                back = timed(base, way.algorithm, add_rules=some)
                if turn:
                    tell("removed", way=way.name, count=count, **removed)
                    tell("added", way=way.name, count=count, **back)


def _spread(lines: Sequence[str], count: int) -> Iterator[str]:
    """Yield `count` of the lines, evenly spread."""
    for number in range(min(count, len(lines))):
        yield lines[number * len(lines) // count]


# ---------------------------------------------------------------------- examples

_SMALLER = 20
"""Example 2 has n² facts: its n is smaller than that of Example 1 by this factor."""
_SHORTER = 40
"""Chains are shorter by this factor: their cost is cubic."""


def _sums(size: int) -> Problem:
    """Example 2 of the paper on DRed^c: the second rule adds up lengths of edges."""
    numbers = range(1, max(2, size // _SMALLER) + 1)
    edges = [
        ("a", "b1", 1),
        *(("a", f"c{i}", 1) for i in numbers),
        *((f"b{i}", f"d{j}", 1) for i in numbers for j in numbers),
    ]
    columns = [pa.array(column) for column in zip(*edges, strict=True)]
    rules = """
        d(?y, ?z) :- b("a", ?y, ?z) .
        d(?y, ?z) :- d(?x, ?z1), b(?x, ?y, ?z2), ?z = ?z1 + ?z2 .
    """
    return Problem(rules, {"b": pa.table(columns, names=["x", "y", "z"])})


def _chain(size: int) -> Problem:
    """A chain of n nodes: n² / 2 facts are in its closure, n³ / 6 instances."""
    nodes = np.arange(max(3, size // _SHORTER))
    edges = pa.table({"x": nodes[:-1], "y": nodes[1:]})
    return Problem(NONLINEAR_CLOSURE, {"edge": edges})


EXAMPLES: Mapping[str, tuple[Callable[[int], Problem], Callable[[Problem], Rows]]] = {
    "000, Example 1": (
        backward_work,
        lambda problem: {"r": problem.facts["r"].slice(problem.size // 2)},
    ),
    "000, Example 2": (_sums, lambda problem: {"b": problem.facts["b"].slice(0, 1)}),
    "003, Example 1": (
        _chain,
        lambda problem: {"edge": problem.facts["edge"].slice(0, 1)},
    ),
}
"""The worked examples about cost, and their deletions."""


def examples(problem: Problem, task: Mapping[str, Any], tell: Tell) -> None:
    """Measure the worked examples at one size, and at two and four times that."""
    del problem
    for name, (make, deleted) in EXAMPLES.items():
        for factor in (1, 2, 4):
            one = make(factor * max(80, round(task["scale"] * _EXAMPLE_SIZE)))
            for way in COUNTING_WAYS:
                loaded(one, way)
                base, size = loaded(one, way)
                found = timed(base, way.algorithm, delete=deleted(one))
                tell(
                    "example",
                    name=name,
                    way=way.name,
                    factor=factor,
                    loading=size["seconds"],
                    loading_instances=size["instances"],
                    **found,
                )


_EXAMPLE_SIZE = 10_000


TABLES: dict[str, Callable[[Problem, Mapping[str, Any], Tell], None]] = {
    "small": small_deletions,
    "large": large_deletions,
    "equality": equality,
    "modules": modules,
    "rules": rules,
    "examples": examples,
}


def measure_row(task: Mapping[str, Any], tell: Tell) -> None:
    """Measure one row of a table, after a tiny one has warmed up the code."""
    from evermat.bench.paper import ROWS, tiny  # noqa: PLC0415  they name this file

    row = next(row for row in ROWS if row.name == task["row"])
    measure = TABLES[task["table"]]
    settings = {"count": 100, "samples": 5, "counts": (1, 10, 100), "axioms": True}
    warm = {**settings, "samples": 1, "scale": 0.01}
    measure(tiny(task["table"]), warm, lambda *_, **__: None)
    measure(row.make(task["scale"]), {**settings, **task}, tell)
