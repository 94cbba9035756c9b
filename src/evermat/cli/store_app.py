"""The commands about stores: `evermat update` and `evermat store …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from evermat.cli.options import (
    CONTEXT,
    AlgorithmOption,
    AllowPath,
    Base,
    BudgetFacts,
    BudgetMemory,
    BudgetRounds,
    BudgetSeconds,
    ContradictionsOption,
    DryRun,
    EngineOption,
    Header,
    Json,
    Show,
    budget_of,
)

Changed = Annotated[
    Optional[list[str]],  # noqa: UP045  read by typer while running
    typer.Option(
        metavar="FILE|DIR|PRED=FILE", help="Facts, as for --facts of `evermat run`."
    ),
]
ChangedRules = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option(metavar="FILE", help="A file of rules; may be repeated."),
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="PLACE", help="The folder or URI of a store.", show_default=False
    ),
]


def update(
    store: Annotated[
        str,
        typer.Option(
            "--store", metavar="PLACE", help="What to change.", show_default=False
        ),
    ],
    updates: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(
            metavar="[TOML|DIR]…",
            help="Updates as `evermat run --then` takes them, applied in order.",
        ),
    ] = None,
    insert: Changed = None,
    delete: Changed = None,
    replace: Changed = None,
    add_rules: ChangedRules = None,
    remove_rules: ChangedRules = None,
    show: Show = 0,
    engine: EngineOption = "embedded",
    algorithm: AlgorithmOption = "auto",
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
    contradictions: ContradictionsOption = "report",
    dry_run: DryRun = False,
    budget_rounds: BudgetRounds = None,
    budget_facts: BudgetFacts = None,
    budget_seconds: BudgetSeconds = None,
    budget_memory: BudgetMemory = None,
    json: Json = False,
) -> None:
    """Change facts and rules of a store, and maintain the derived facts.

    The five options together are one update; files of updates come after it, each as an
    update of its own. Every update is a new version of the store, unless it fails or
    changes nothing. --replace makes the facts of a file the only explicit facts of a
    predicate.

    \b
    evermat update --store kept/ --delete gone/edge.csv --insert new/
    evermat update --store kept/ --replace employee=tonight.csv
    evermat update --store kept/ --add-rules more.dl --dry-run
    evermat update --store kept/ monday.toml tuesday/ --show 3
    """
    from evermat.cli.contradictions import policy_of
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.stores import NamedUpdate, update_store

    named = NamedUpdate(
        insert=insert or [],
        delete=delete or [],
        replace=replace or [],
        add_rules=add_rules or [],
        remove_rules=remove_rules or [],
    )
    if not named and not updates:
        message = (
            "nothing to do: give --insert, --delete, --replace, --add-rules, "
            "--remove-rules, or files of updates"
        )
        raise typer.BadParameter(message)
    job = Job(
        store=store,
        updates=updates or [],
        show=show,
        engine=engine,
        algorithm=algorithm,
        header=header,
        base=base,
        is_dry_run=dry_run,
        contradictions=policy_of(contradictions),
        budget=budget_of(budget_rounds, budget_facts, budget_seconds, budget_memory),
        allow_paths=allow_path or [],
    )
    output = Output(is_json=json)
    update_store(job, named, output)
    output.finish()


stores = typer.Typer(
    name="store",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=CONTEXT,
    help="""What `--store` keeps: versions, changes, old files, damage.

    \b
    evermat store history kept/             the versions
    evermat store changes kept/ --since 3   facts added and removed
    evermat store vacuum kept/ --keep 10    remove what only older versions need
    evermat store verify kept/              is everything what was written?
    evermat store restore kept/ --to 7      go on from an older version
    """,
)


@stores.command()
def history(place: Place, json: Json = False) -> None:
    """List the versions, with their times and numbers of added and removed facts."""
    from evermat.cli.output import Output
    from evermat.cli.stores import show_history

    output = Output(is_json=json)
    show_history(place, output)
    output.finish()


@stores.command()
def changes(
    place: Place,
    since: Annotated[
        int,
        typer.Option(
            metavar="VERSION", help="From this version on, without it.", min=0
        ),
    ] = 0,
    until: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="VERSION", help="Up to this version.", min=0),
    ] = None,
    json: Json = False,
) -> None:
    """List the facts that were added (+) and removed (-), version by version."""
    from evermat.cli.output import Output
    from evermat.cli.stores import show_changes

    output = Output(is_json=json)
    show_changes(place, since, until, output)
    output.finish()


@stores.command()
def vacuum(
    place: Place,
    keep: Annotated[
        int,
        typer.Option(metavar="N", help="How many versions stay readable.", min=1),
    ] = 10,
    hours: Annotated[
        int,
        typer.Option(metavar="H", help="Files younger than this stay as well.", min=0),
    ] = 0,
    json: Json = False,
) -> None:
    """Remove files that only older versions need, and those of failed updates."""
    from evermat.cli.output import Output
    from evermat.cli.stores import vacuum_store

    output = Output(is_json=json)
    vacuum_store(place, keep, hours, output)
    output.finish()


@stores.command()
def verify(place: Place, json: Json = False) -> None:
    """Check every file of every version; exit with 1 if something is damaged.

    All bytes are read, and compared with the digests written with them. Data that other
    programs wrote into the store also count as damage.
    """
    from evermat.cli import OK, WRONG_INPUT
    from evermat.cli.output import Output
    from evermat.cli.stores import verify_store

    output = Output(is_json=json)
    is_whole = verify_store(place, output)
    output.finish()
    raise typer.Exit(OK if is_whole else WRONG_INPUT)


@stores.command()
def restore(
    place: Place,
    to: Annotated[
        int,
        typer.Option(metavar="VERSION", help="The version to go back to.", min=0),
    ],
    json: Json = False,
) -> None:
    """Make an older version the newest again, and repair the log if it is damaged.

    The new version repeats the old one. Nothing is removed: the versions in between
    stay until they are vacuumed.
    """
    from evermat.cli.output import Output
    from evermat.cli.stores import restore_store

    output = Output(is_json=json)
    restore_store(place, to, output)
    output.finish()


@stores.command()
def audit(place: Place, json: Json = False) -> None:
    """Derive everything again and compare it with a store; exit with 1 if it differs.

    Facts, explicit facts, counters and equal constants are compared. Nothing is
    changed.
    """
    from evermat.cli import OK, WRONG_INPUT
    from evermat.cli.output import Output
    from evermat.cli.stores import audit_store

    output = Output(is_json=json)
    is_right = audit_store(place, output)
    output.finish()
    raise typer.Exit(OK if is_right else WRONG_INPUT)
