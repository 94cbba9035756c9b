"""Whole jobs, as users schedule them: start, open, work, commit, publish.

The shop of `generators.orders` as a pipeline, compared with a careful loop that
rebuilds everything. Figures are the processor time of all processes of a job; published
files are compared.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from evermat.bench.generators.orders import OUTPUTS, configuration, write_shop
from evermat.bench.orders_loop import MASTER, MEMORY
from evermat.bench.processes import run_job, say
from evermat.bench.report import Table, count_text, seconds_text

if TYPE_CHECKING:
    from evermat.bench.processes import Options, Record

UPDATE_GOAL = 0.15
RUN_GOAL = 1.3
REBUILD_GOAL = 0.7
_LOOP = ("-m", "evermat.bench.orders_loop")
_PLACES = ("driver", "distributed")
_NOTE = (
    "A day later, 1,000 rows come and 1,000 leave. The loop keeps no state and no "
    "counters, and rebuilds everything. What is published is the same. Goals: an "
    f"update on the driver ≤ {UPDATE_GOAL}× of the run; distributed, a run ≤ "
    f"{RUN_GOAL}× of the loop and an update ≤ {REBUILD_GOAL}×."
)
TITLES = {
    "loop": "careful loop",
    "loop, a day later": "careful loop, a day later",
    **{f"{at} run": f"`pipeline run`, {at}" for at in _PLACES},
    **{f"{at} update": f"`pipeline update`, {at}" for at in _PLACES},
}


def measure_jobs(options: Options) -> list[Record]:
    """Run all jobs at a scale, one after the other."""
    with TemporaryDirectory(prefix="evermat-orders-") as place:
        shop = _Shop(Path(place), options)
        loops = options.peers
        if loops:
            shop.job("loop", *_LOOP, place)
        for at in _PLACES:
            shop.pipeline(at, "run")
            shop.compare(f"{at} run", loops=loops)
        if loops:
            shop.job("loop, a day later", *_LOOP, place, "day")
        for kind in ("new", "gone"):
            day = shop.folder / "day" / kind
            shutil.copytree(day, shop.folder / kind, dirs_exist_ok=True)
        for at in _PLACES:
            shop.pipeline(at, "update")
            shop.compare(f"{at} update", loops=loops)
        return shop.records


class _Shop:
    """The files of a shop, and the figures."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder = folder
        self.records: list[Record] = []
        self._limit = options.time_limit
        self._rows = write_shop(folder, options.scale)

    def pipeline(self, place: str, command: str) -> None:
        """Run the pipeline in one of the places, with a state of its own."""
        engine = f'name = "spark"\nplace = "{place}"\nmaster = "{MASTER}"'
        text = configuration(engine, {"spark.driver.memory": MEMORY})
        text = text.replace('"state"', f'"state-{place}"')
        file = self.folder / f"{place}.toml"
        file.write_text(text, encoding="utf-8")
        self.job(f"{place} {command}", "-m", "evermat", "pipeline", command, str(file))

    def job(self, name: str, *arguments: str) -> None:
        """Run a job with the current Python."""
        say(f"spark: orders: {name}")
        job = run_job([sys.executable, *arguments], time_limit=self._limit)
        if job.reason:
            say(f"spark: orders: {name}: {job.reason}")
        self.records.append(
            {
                "step": name,
                "rows": self._rows,
                "cpu": job.cpu,
                "seconds": job.seconds,
                "reason": job.reason,
            }
        )

    def compare(self, name: str, *, loops: bool) -> None:
        """Check that the loop has published the same rows."""
        if loops and not any(record["reason"] for record in self.records):
            for each in OUTPUTS:
                ours, theirs = (
                    {tuple(row.values()) for row in _rows(self.folder / by / each)}
                    for by in ("out", "loop")
                )
                if ours != theirs:
                    self.records[-1]["reason"] = f"`{each}` differs after {name}"


def _rows(place: Path) -> list[dict[str, object]]:
    table = pq.read_table(place, partitioning=None)
    names = [f"column{at}" for at in range(table.num_columns)]
    return list(table.rename_columns(names).to_pylist())


def jobs_table(records: list[Record]) -> Table:
    """Return all jobs with their processor time, and the goals."""
    found = {record["step"]: record for record in records if not record["reason"]}
    rows = []
    for record in records:
        name, ratios = record["step"], ("–", "–")
        if record["reason"]:
            rows.append((TITLES[name], record["reason"], "–", "–", "–"))
            continue
        place, _, command = name.partition(" ")
        if command in {"run", "update"}:
            loop = "loop" if command == "run" else "loop, a day later"
            run = f"{place} run" if command == "update" else ""
            ratios = _ratio(record, found.get(run)), _ratio(record, found.get(loop))
        times = (seconds_text(record["cpu"]), seconds_text(record["seconds"]))
        rows.append((TITLES[name], *times, *ratios))
    size = count_text(records[0]["rows"]) if records else "–"
    return Table(
        f"Recalls of a shop with {size} rows, as whole jobs",
        ("job", "processor time", "on the clock", "of the run", "of the loop"),
        tuple(rows),
        (_NOTE,),
    )


def _ratio(record: Record, other: Record | None) -> str:
    return "–" if other is None else f"{record['cpu'] / other['cpu']:.2f}×"
