"""The workloads, a few lines each: a name, a generator and the goals.

`scale` multiplies the work: at scale 2 a workload has about twice as many rule
instances. The goals refer to scale 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING

from evermat.bench.generators.graphs import (
    backward_work,
    linear_closure,
    nonlinear_closure,
    path_lengths,
    points_to,
)
from evermat.bench.generators.ontologies import ontology_rules
from evermat.bench.generators.universities import universities

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.bench.generators.problem import Problem


@dataclass(frozen=True, slots=True)
class Workload:
    """A problem that can be generated at any scale.

    Attributes:
        name: its name on the command line.
        title: its title in tables.
        make: the generator, from a scale.
        reach_seconds: the goal for materialising loaded facts.
        reach_megabytes: the goal for the memory of the whole process.
        orientation: published figures of other systems, for the table.
        peers: the peers to compare with.
    """

    name: str
    title: str
    make: Callable[[float], Problem]
    reach_seconds: float | None = None
    reach_megabytes: float | None = None
    orientation: str = ""
    peers: tuple[str, ...] = ("clingo", "duckdb")


def _dag(
    generator: Callable[[int, int], Problem], nodes: int, edges: int, scale: float
) -> Problem:
    # The closure of a graph of fixed density per node grows with the square.
    side = sqrt(scale)
    return generator(max(2, round(nodes * side)), max(1, round(edges * side)))


def _path_lengths(nodes: int, scale: float) -> Problem:
    size = max(2, round(nodes * scale))
    return path_lengths(size, min(10 * size, size * (size - 1) // 2))


def _points_to(scale: float) -> Problem:
    sizes = (round(size * scale) for size in (50_000, 32_000, 10_700))
    return points_to(*sizes)


def _universities(count: int, scale: float) -> Problem:
    wanted = count * scale
    if wanted >= 1:
        return universities(round(wanted))
    return universities(1, departments=20 * wanted)


def _ontology(axioms: int, scale: float) -> Problem:
    return ontology_rules(axioms, round(1_000_000 * scale))


def _backward_work(n: int, scale: float) -> Problem:
    return backward_work(max(1, round(n * scale)))


def _by_name(*workloads: Workload) -> dict[str, Workload]:
    return {workload.name: workload for workload in workloads}


WORKLOADS = _by_name(
    Workload(
        name="dag-linear",
        title="random DAG, 10k nodes, 100k edges, linear closure",
        make=partial(_dag, linear_closure, 10_000, 100_000),
        reach_seconds=6.0,
        reach_megabytes=1500.0,
        orientation="Soufflé compiled 20 s on one thread, 11.4 s on two, 380 MB",
    ),
    Workload(
        name="dag-nonlinear",
        title="random DAG, 2k nodes, 10k edges, nonlinear closure",
        make=partial(_dag, nonlinear_closure, 2_000, 10_000),
    ),
    Workload(
        name="sspe",
        title="path lengths from one node (SSPE), 100k nodes, 1 M edges",
        make=partial(_path_lengths, 100_000),
        reach_seconds=2.5,
        orientation="Soufflé compiled, 2 threads: 3.2 s of which 0.4 s loading",
    ),
    Workload(
        name="universities",
        title="LUBM look-alike, 10 universities, 95 rules",
        make=partial(_universities, 10),
        reach_seconds=0.5,
        orientation="Soufflé compiled 0.36 s of which 0.21 s loading",
    ),
    Workload(
        name="points-to",
        title="points-to analysis (CSPA), 50k variables",
        make=_points_to,
        reach_seconds=5.0,
        orientation="Soufflé compiled, 2 threads: 6.7 s",
    ),
    Workload(
        name="ontology-20",
        title="20 axioms as rules over 1 M triples",
        make=partial(_ontology, 20),
    ),
    Workload(
        name="ontology-20k",
        title="20,000 axioms as rules over the same triples",
        make=partial(_ontology, 20_000),
        # As SQL, 20,000 rules would be an unrealistic statement.
        peers=("clingo",),
    ),
    Workload(
        name="universities-50",
        title="LUBM look-alike, 50 universities",
        make=partial(_universities, 50),
    ),
    Workload(
        name="example-1",
        title="Example 1, n = 100k",
        make=partial(_backward_work, 100_000),
    ),
)

MATERIALISE = (
    *("dag-linear", "dag-nonlinear", "sspe", "universities", "points-to"),
    *("ontology-20", "ontology-20k"),
)
"""The workloads of the materialisation suite, in the order of its tables."""

GROWTH = ("dag-linear", "sspe", "universities", "points-to", "ontology-20k")
"""Workloads that are also run at several scales."""
