"""`evermat pipeline`: runs, updates and their history, for terminals and pipes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.cli.output import seconds
from evermat.errors.wording import counted
from evermat.pipeline import Pipeline, read_config
from evermat.pipeline.report import OK, Status, read_reports, read_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.status import Status as Spinner

    from evermat.cli.output import Cell, Output
    from evermat.maintenance.limits import Step as Round
    from evermat.pipeline.config import Config
    from evermat.pipeline.report import Step
    from evermat.pipeline.runs import Finished


class StepLines:
    """Reports steps: with a moving line on a terminal, with plain lines elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._moving: ExitStack | None = None
        self._spinner: Spinner | None = None

    def begin(self, step: Step) -> None:
        """Report the start of a step."""
        if not self._is_terminal:
            return
        from rich.console import Console

        self._moving = ExitStack()
        status = Console(stderr=True).status(step.name)
        self._spinner = self._moving.enter_context(status)

    def __call__(self, done: Round) -> None:
        """Report a round of a materialisation."""
        if self._spinner is not None:
            self._spinner.update(
                f"stratum {done.stratum}, {done.phase} round {done.round}, "
                f"{done.total_facts:,} new facts"
            )

    def tell(self, news: str) -> None:
        """Report progress within a step."""
        if self._spinner is not None:
            self._spinner.update(news)
        elif not self._is_terminal:
            print(f"so far\t{news}", file=sys.stderr, flush=True)  # noqa: T201

    def end(self, step: Step) -> None:
        """Report the end of a step."""
        self._line(step, "✓", "green")

    def fail(self, step: Step) -> None:
        """Report the failure of a step; the error itself is shown at the end."""
        self._line(step, "✗", "red")

    def _line(self, step: Step, sign: str, colour: str) -> None:
        if self._moving is not None:
            self._moving.close()
            self._moving = self._spinner = None
        if not self._is_terminal:
            word = "done" if sign == "✓" else "failed"
            line = f"{word}\t{step.name}\t{seconds(step.seconds)}\t{step.note}"
            print(line.rstrip(), file=sys.stderr, flush=True)  # noqa: T201
            return
        from rich.console import Console
        from rich.text import Text

        shown = Text.assemble(
            (f"{sign} ", colour),
            f"{step.name:<28}",
            (f"{seconds(step.seconds):>10}", "dim"),
            f"   {step.note}",
        )
        Console(stderr=True).print(shown)


def chosen(path: Path, engine: str | None, master: str | None) -> Config:
    """Return a configuration with the overrides of the command line."""
    config = read_config(path)
    settings = config.engine
    if engine is not None:
        settings = replace(settings, name=engine)
    if master is not None:
        settings = replace(settings, master=master)
    return replace(config, engine=settings)


def run_pipeline(
    config: Config,
    command: str,
    output: Output,
    *,
    is_dry: bool = False,
    is_profiled: bool = False,
) -> None:
    """Run, update or follow a stream, and show the result."""
    lines = StepLines()
    pipeline = Pipeline(config, watcher=lines, progress=lines, is_profiled=is_profiled)
    if command == "check":
        pipeline.check()
        output.document["pipeline"] = config.name
        output.say(f"{config.name}: all is there")
        return
    commands = {"run": pipeline.run, "update": pipeline.update}
    if command in commands:
        _show(commands[command](is_dry=is_dry), output)
    else:
        _show(pipeline.stream(), output)


def _show_contradictions(found: Mapping[str, Any], output: Output) -> None:
    if found.get("count"):
        output.heading("Contradictions")
        output.table(["contradiction"], [[each] for each in found["shown"]])
        more = found["count"] - len(found["shown"])
        if more:
            output.say(f"and {more:,} more")


def _show(finished: Finished, output: Output) -> None:
    report = finished.report
    output.document.update(report.document())
    output.document["page"] = finished.page
    output.heading("Sources")
    output.table(
        ["source", "rows", "rejected", "facts"],
        [
            [each["name"], each["rows"], each["rejected"], sum(each["facts"].values())]
            for each in report.sources
        ],
    )
    output.heading("Changes")
    output.table(
        ["predicate", "added", "removed", "facts"],
        [
            [name, size["added"], size["removed"], report.predicates[name]["facts"]]
            for name, size in report.changes.items()
        ],
    )
    _show_contradictions(report.contradictions, output)
    if report.expectations:
        output.heading("Expectations")
        output.table(
            ["expectation", "otherwise", "found"],
            [
                [each["name"], each["action"], each["note"]]
                for each in report.expectations
            ],
        )
    if report.outputs:
        output.heading("Outputs")
        output.table(
            ["output", "rows", "place"],
            [
                [each["title"], each["rows"], near(each["place"])]
                for each in report.outputs
            ],
        )
    if not finished.page:
        output.say(f"dry {report.command} of {report.pipeline}: nothing was changed")
        return
    output.say(
        f"{report.command} of {report.pipeline}: version {report.version} in "
        f"{seconds(report.seconds)}, {counted(len(report.steps), 'step')}"
    )
    output.say(f"report: {near(finished.page)}")


def near(place: str) -> str:
    """Return a path relative to the current folder, if it is below it."""
    here = Path.cwd()
    path = Path(place)
    return str(path.relative_to(here)) if path.is_relative_to(here) else place


def show_status(path: Path, output: Output, *, limit: int) -> None:
    """Show the contents of the state and the results of the last runs."""
    config = read_config(path)
    status = read_status(config)
    runs = read_reports(config.reports, limit)
    output.document.update(
        {
            "pipeline": config.name,
            "state": config.state,
            "version": status.version,
            "versions": status.versions,
            "predicates": status.predicates,
            "runs": list(runs),
        }
    )
    _show_state(config, status, output, limit)
    if not runs:
        if limit:
            output.say(f"no runs so far; first: evermat pipeline run {path}")
        return
    output.heading("Last runs")
    output.table(
        ["run", "status", "version", "seconds", "rows", "rejected", "added", "removed"],
        [_run_line(run) for run in runs],
    )
    failed = next((run for run in runs[:1] if run["status"] != OK), None)
    if failed is not None:
        output.say(f"the last run failed:\n{failed['error']}")


def _show_state(config: Config, status: Status, output: Output, limit: int) -> None:
    if config.state is None:
        output.say("no [state]: every run begins anew")
        return
    if status.version is None:
        output.say(f"state: {config.state} (nothing there)")
        return
    output.say(f"state: {config.state}, version {status.version}")
    output.heading("Versions")
    output.table(
        ["version", "time", "added", "removed"],
        [
            [str(each["version"]), str(each["time"]), *_sizes(each)]
            for each in status.versions[:limit]
        ],
    )
    output.heading("Predicates")
    output.table(
        ["predicate", "facts", "explicit"],
        [[name, s["facts"], s["explicit"]] for name, s in status.predicates.items()],
    )


def _sizes(version: Mapping[str, Any]) -> list[Cell]:
    return [int(version["added"]), int(version["removed"])]


def _run_line(run: Mapping[str, Any]) -> list[Cell]:
    sources, changes = run["sources"], run["changes"].values()
    return [
        run["run"],
        run["status"],
        "–" if run["version"] is None else run["version"],
        float(run["seconds"]),
        sum(each["rows"] for each in sources),
        sum(each["rejected"] for each in sources),
        sum(each["added"] for each in changes),
        sum(each["removed"] for each in changes),
    ]
