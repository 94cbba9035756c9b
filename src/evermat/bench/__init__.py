"""Benchmarks: seeded problems, and how long Evermat and its peers take for them.

    evermat bench materialise
    evermat bench maintain
    evermat bench modules
    evermat bench spark
    evermat bench server
    evermat bench aggregates
    evermat bench paper
    evermat bench rdf

or, from Python, `evermat.bench.run("materialise", scale=0.1)`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

SUITES = (
    *("materialise", "maintain", "modules", "equality", "spark", "server"),
    *("aggregates", "paper", "rdf"),
)

_REPEAT = 3
_TIME_LIMIT = 300.0


def run(  # noqa: PLR0913  options by name
    name: str,
    *,
    scale: float = 1.0,
    repeat: int = _REPEAT,
    peers: bool = True,
    only: Iterable[str] = (),
    time_limit: float = _TIME_LIMIT,
    json: str | PathLike[str] | None = None,
    write: str | PathLike[str] | None = None,
) -> dict[str, object]:
    """Run a suite, print its tables and return its figures.

    Args:
        name: one of `SUITES`.
        scale: multiplies the size of every workload; 1 is what the goals speak of.
        repeat: how often materialisations are measured; tables show medians,
            those of `equality` the least.
        peers: whether clingo and DuckDB are measured too, where they are installed.
        only: names of workloads or updates, to run these alone.
        time_limit: seconds after which a single measuring process is stopped.
        json: a file to write the figures to.
        write: a Markdown document whose tables are replaced, `docs/benchmarks.md`.

    Raises:
        ValueError: no such suite or workload, or a document without a place for it.
    """
    # The suites load NumPy and pyarrow, which naming them does not need.
    from evermat.bench import report  # noqa: PLC0415
    from evermat.bench.processes import Options  # noqa: PLC0415

    if name not in SUITES:
        message = f"there is no suite `{name}`; there are {' and '.join(SUITES)}"
        raise ValueError(message)
    options = Options(scale, repeat, peers, time_limit, tuple(only))
    _check_names(name, options.only)
    suite = import_module(f"evermat.bench.{name}")
    found = suite.run(options)
    tables: list[report.Table] = suite.tables(found, options)
    figures = asdict(found)
    if scale != 1:
        # Names and goals speak of full size; a reader must see that this is not it.
        tables = [
            replace(table, title=f"{table.title} (at scale {scale:g})")
            for table in tables
        ]
    for table in tables:
        report.show(table)
    content: dict[str, object] = {
        "suite": name,
        "machine": report.machine(),
        "options": asdict(options),
        **figures,
    }
    if json is not None:
        report.write_json(Path(json), content)
    if write is not None:
        parts = [report.machine_text(), *(report.markdown(table) for table in tables)]
        report.rewrite(Path(write), name, "\n\n".join(parts))
    return content


def _check_names(suite: str, only: tuple[str, ...]) -> None:
    from evermat.bench import (  # noqa: PLC0415  see `run`
        aggregates,
        equality,
        paper,
        rdf,
        server,
        spark,
    )
    from evermat.bench.maintain import NAMES as UPDATES  # noqa: PLC0415
    from evermat.bench.modules import NAMES  # noqa: PLC0415
    from evermat.bench.workloads import MATERIALISE  # noqa: PLC0415

    known = {
        "materialise": MATERIALISE,
        "maintain": UPDATES,
        "modules": NAMES,
        "equality": equality.NAMES,
        "spark": spark.NAMES,
        "server": server.NAMES,
        "aggregates": aggregates.NAMES,
        "paper": paper.NAMES,
        "rdf": rdf.NAMES,
    }[suite]
    for name in only:
        if name not in known:
            message = f"there is no `{name}` in {suite}; there are {', '.join(known)}"
            raise ValueError(message)
