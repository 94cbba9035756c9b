"""The commands of pipelines and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from evermat.cli.options import CONTEXT, Json, known_engine

pipeline = typer.Typer(
    name="pipeline",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=CONTEXT,
    help="""Sources in, consequences out, kept true run after run; on Spark or embedded.

    \b
    evermat pipeline run pipeline.toml       take everything, materialise, publish
    evermat pipeline update pipeline.toml    take what changed, maintain, publish
    evermat pipeline stream pipeline.toml    follow a stream of change events
    evermat pipeline check pipeline.toml     check that everything is there and fits
    evermat pipeline status pipeline.toml    versions, counts, the last runs

    A configuration says what to read, how columns become facts, which rules to follow
    and where results go. The smallest one:

    \b
    [program]
    rules = "rules.dl"
    [[source]]
    predicate = "edge"
    path = "data/edge.csv"
    [[output]]
    predicate = "reach"
    path = "out/reach"

    Rows that are wrong go to a side table with the reason; too many fail the run. If a
    run fails, the state is as it was. Every run leaves a report: JSON, and a page.
    All entries are described in docs/pipeline.md.
    """,
)
ConfigFile = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="A TOML file.", show_default=False)
]
PipelineEngine = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--engine",
        metavar="NAME",
        help="spark or embedded, whatever CONFIG says.",
        callback=known_engine,
    ),
]
PipelineMaster = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--master", metavar="URL", help="The Spark master, such as local[4]."),
]


DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Tell what would change, and change nothing."),
]


Profiled = Annotated[
    bool,
    typer.Option("--profile", help="Have the report show what each rule costs."),
]


def _perform(
    command: str,
    config: Path,
    engine: str | None,
    master: str | None,
    *,
    is_json: bool,
    is_dry: bool = False,
    is_profiled: bool = False,
) -> None:
    """Run one of the commands, and print its report."""
    from evermat.cli.output import Output
    from evermat.cli.pipeline import chosen, run_pipeline

    output = Output(is_json=is_json)
    settings = chosen(config, engine, master)
    run_pipeline(settings, command, output, is_dry=is_dry, is_profiled=is_profiled)
    output.finish()


@pipeline.command("run")
def pipeline_run(
    config: ConfigFile,
    engine: PipelineEngine = None,
    master: PipelineMaster = None,
    dry_run: DryRun = False,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Read all sources, materialise, write the outputs.

    If there is a state already, it is brought in line with the sources, as a new
    version.

    \b
    evermat pipeline run pipeline.toml
    evermat pipeline run pipeline.toml --engine embedded
    evermat pipeline run pipeline.toml --master spark://host:7077 --json
    """
    _perform(
        "run",
        config,
        engine,
        master,
        is_json=json,
        is_dry=dry_run,
        is_profiled=profile,
    )


@pipeline.command("update")
def pipeline_update(
    config: ConfigFile,
    engine: PipelineEngine = None,
    master: PipelineMaster = None,
    dry_run: DryRun = False,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Read changes, maintain the state, publish.

    Sources with `update` name files of rows that were added and removed; all others are
    compared with their previous contents. Changes of rules are applied in the same
    step.

    \b
    evermat pipeline update pipeline.toml
    """
    _perform(
        "update",
        config,
        engine,
        master,
        is_json=json,
        is_dry=dry_run,
        is_profiled=profile,
    )


@pipeline.command("check")
def pipeline_check(config: ConfigFile, json: Json = False) -> None:
    """Check that rules, sources, outputs and the state exist and fit together.

    All problems are reported. Columns are checked, rows are not.

    \b
    evermat pipeline check pipeline.toml
    """
    _perform("check", config, None, None, is_json=json)


@pipeline.command("stream")
def pipeline_stream(
    config: ConfigFile,
    engine: PipelineEngine = None,
    master: PipelineMaster = None,
    json: Json = False,
) -> None:
    """Follow a stream of change events, exactly once.

    [stream] of CONFIG says where events come from and where their effects go. With
    `trigger = "once"` it processes what is available; with seconds it runs until it is
    interrupted, and then ends after a whole batch; a second interrupt does not wait.

    \b
    evermat pipeline run pipeline.toml        once, for the state to begin with
    evermat pipeline stream pipeline.toml
    """
    _perform("stream", config, engine, master, is_json=json)


@pipeline.command("status")
def pipeline_status(
    config: ConfigFile,
    limit: Annotated[
        int, typer.Option(metavar="N", help="Show the last N runs.", min=0)
    ] = 10,
    json: Json = False,
) -> None:
    """Show versions, counts, the last runs and rejected rows.

    \b
    evermat pipeline status pipeline.toml
    evermat pipeline status pipeline.toml --json
    """
    from evermat.cli.output import Output
    from evermat.cli.pipeline import show_status

    output = Output(is_json=json)
    show_status(config, output, limit=limit)
    output.finish()
