"""Benchmarks: seeded problems, and the times that Evermat and its peers take.

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
        scale: multiplies the size of every workload; the goals refer to scale 1.
        repeat: the number of times materialisations are measured; tables show medians,
            and minima for `equality`.
        peers: whether clingo and DuckDB are measured too, if they are installed.
        only: names of workloads or updates, to run these alone.
        time_limit: seconds after which a single measuring process is stopped.
        json: a file to write the figures to.
        write: a Markdown document whose tables are replaced, `docs/benchmarks.md`.

    Raises:
        ValueError: there is no such suite or workload, or the document has no place for
            it.
    """
    # The suites load NumPy and pyarrow, which is not needed to list their names.
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
        # Names and goals refer to full size; readers must see that this is not it.
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
