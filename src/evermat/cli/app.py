"""The commands and their options; the work is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from evermat import __version__
from evermat.cli import DOES_NOT_HOLD
from evermat.cli.options import (
    CONTEXT,
    AlgorithmOption,
    AllowPath,
    Base,
    BudgetFacts,
    BudgetMemory,
    BudgetRounds,
    BudgetSeconds,
    DryRun,
    EngineOption,
    Facts,
    Header,
    Json,
    Rules,
    Show,
    Store,
    SyntaxOption,
    Version,
    budget_of,
    known_format,
)
from evermat.cli.pipeline_app import pipeline
from evermat.cli.programs import Syntax
from evermat.cli.store_app import stores, update

app = typer.Typer(
    name="evermat",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
    help="""Datalog that stays true while facts and rules change.

    \b
    evermat run rules.dl --facts data/                     materialise
    evermat run rules.dl --facts data/ --then monday.toml  … and maintain
    evermat query rules.dl --facts data/ 'reach(?x, "c")'  ask
    evermat explain rules.dl -f data/ 'reach("a", "c")'    show why
    evermat check rules.dl                                 find mistakes
    evermat fmt --write rules.dl                           put into form
    evermat run rules.dl --facts data/ --store kept/       materialise, and keep it
    evermat update --store kept/ --delete gone/edge.csv    maintain what is kept
    evermat query --store kept/ 'reach(?x, "c")'           ask it
    evermat pipeline run pipeline.toml                     sources to outputs, on Spark

    Results go to standard output, progress and errors to standard error. Tables are
    drawn on a terminal; in a pipe they are lines with tabs. --json gives one document.

    \b
    Exit codes:  0  all went well
                 1  a program, facts or an update are wrong
                 2  the command line is wrong
                 3  a budget was used up
                 4  a fact to be explained does not hold
               130  interrupted
    """,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.")
    ] = False,
) -> None:
    """Options that stand before a command."""
    if version:
        typer.echo(f"evermat {__version__}")
        raise typer.Exit


@app.command()
def run(
    rules: Rules,
    facts: Facts = None,
    then: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            metavar="TOML|DIR",
            help="An update to apply then: a TOML file, or a folder with insert/, "
            "delete/, rules+ and rules-. May be repeated; applied in order.",
        ),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="DIR",
            help="Write the outputs of the program, or all derived predicates, here.",
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="SUFFIX",
            help="csv, tsv, parquet, …",
            callback=known_format,
        ),
    ] = "csv",
    show: Show = 0,
    store: Store = None,
    engine: EngineOption = "embedded",
    algorithm: AlgorithmOption = "auto",
    syntax: SyntaxOption = Syntax.AUTO,
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
    dry_run: DryRun = False,
    budget_rounds: BudgetRounds = None,
    budget_facts: BudgetFacts = None,
    budget_seconds: BudgetSeconds = None,
    budget_memory: BudgetMemory = None,
    json: Json = False,
) -> None:
    """Materialise a program over facts, then apply updates one after the other.

    With --store the result is kept, and every update is a version of it. What is kept
    there already goes on: its rules become those of RULES, and the facts are added.

    \b
    evermat run rules.dl --facts edge.csv
    evermat run rules.dl -f data/ -f extra.ttl --out results/ --format parquet
    evermat run rules.dl -f data/ --then monday.toml --then tuesday/ --show 3
    evermat run rules.dl -f data/ --then monday.toml --dry-run
    evermat run program.dl --syntax souffle --facts facts/ --out out/
    evermat run rules.dl -f data/ --store kept/
    """
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.run import run_job

    job = Job(
        rules=rules,
        store=store,
        facts=facts or [],
        updates=then or [],
        out=out,
        form=form,
        show=show,
        engine=engine,
        algorithm=algorithm,
        syntax=syntax,
        header=header,
        base=base,
        is_dry_run=dry_run,
        allow_paths=allow_path or [],
        budget=budget_of(budget_rounds, budget_facts, budget_seconds, budget_memory),
    )
    output = Output(is_json=json)
    run_job(job, output)
    output.finish()


@app.command()
def query(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RULES] QUERY",
            help="File of rules, unless there is --store; and a question such as "
            "'reach(?x, \"c\")'.",
        ),
    ],
    facts: Facts = None,
    store: Store = None,
    at: Version = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", help="Show or write at most N rows.", min=0),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Write the answers to a file instead."),
    ] = None,
    terms: Annotated[
        bool,
        typer.Option(
            "--terms", help="Show strings in quotes: what is shown is read as itself."
        ),
    ] = False,
    engine: EngineOption = "embedded",
    syntax: SyntaxOption = Syntax.AUTO,
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
    budget_rounds: BudgetRounds = None,
    budget_facts: BudgetFacts = None,
    budget_seconds: BudgetSeconds = None,
    budget_memory: BudgetMemory = None,
    json: Json = False,
) -> None:
    """Materialise a program over facts, or open a store, and answer a question.

    A question is a conjunction of atoms, negated atoms and comparisons; its variables
    are the columns of the answer. A question without variables is answered yes or no.

    \b
    evermat query rules.dl -f data/ 'reach(?x, "c"), not blocked(?x)'
    evermat query rules.dl -f data/ 'price(?item, ?p), ?p > 100' --json
    evermat query rules.dl -f data/ 'reach("a", "c")'
    evermat query --store kept/ 'reach("a", ?x)' --at 3
    """
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.run import answer

    rules, question = _rules_and("QUERY", words, store, at, facts)
    job = Job(
        rules=rules,
        store=store,
        at=at,
        facts=facts or [],
        engine=engine,
        syntax=syntax,
        header=header,
        base=base,
        budget=budget_of(budget_rounds, budget_facts, budget_seconds, budget_memory),
        allow_paths=allow_path or [],
    )
    output = Output(is_json=json, has_terms=terms)
    answer(job, question, output, limit=limit, out=out)
    output.finish()


def _rules_and(
    what: str,
    words: list[str],
    store: str | None,
    at: int | None,
    facts: list[str] | None,
) -> tuple[Path | None, str]:
    """The rules and what is asked; a store has rules and facts of its own."""
    if store is None and at is None and len(words) == 2:  # noqa: PLR2004  both
        return Path(words[0]), words[1]
    if store is not None and len(words) == 1 and not facts:
        return None, words[0]
    if store is not None:
        message = f"with --store there is {what} alone: it has rules and facts"
    elif at is not None:
        message = "--at is a version of --store"
    else:
        message = f"needs RULES and {what}, or --store and {what}"
    raise typer.BadParameter(message)


@app.command()
def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RULES] FACT",
            help="File of rules, unless there is --store; and a fact such as "
            '\'reach("a", "c")\'.',
        ),
    ],
    facts: Facts = None,
    store: Store = None,
    at: Version = None,
    derivations: Annotated[
        int,
        typer.Option(
            metavar="N", help="Also show N of all rule instances that derive it.", min=0
        ),
    ] = 0,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", help="Give up after N rule instances.", min=1),
    ] = None,
    engine: EngineOption = "embedded",
    syntax: SyntaxOption = Syntax.AUTO,
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
    dot: Annotated[
        bool, typer.Option("--dot", help="A graph for Graphviz, nothing else.")
    ] = False,
    json: Json = False,
) -> None:
    """Materialise a program over facts, or open a store, and show why a fact holds.

    The fact, the rule that derives it, and the same for every fact that the rule needs,
    down to given facts. It is a proof of least height; of several, the one whose rules
    come first. If the fact does not hold, the exit code is 4.

    \b
    evermat explain rules.dl -f data/ 'reach("a", "c")'
    evermat explain rules.dl -f data/ '[:anna, a, :Person]' --derivations 10
    evermat explain rules.dl -f data/ 'reach("a", "c")' --json
    evermat explain rules.dl -f data/ 'reach("a", "c")' --dot | dot -Tsvg > proof.svg
    evermat explain --store kept/ 'reach("a", "c")'
    """
    from evermat.cli.explain import Form, show_explanation
    from evermat.cli.jobs import Job

    if dot and json:
        message = "--dot and --json do not go together"
        raise typer.BadParameter(message)
    rules, fact = _rules_and("FACT", words, store, at, facts)
    job = Job(
        rules=rules,
        store=store,
        at=at,
        facts=facts or [],
        engine=engine,
        syntax=syntax,
        header=header,
        base=base,
        allow_paths=allow_path or [],
    )
    form = Form.DOT if dot else Form.JSON if json else Form.TEXT
    holds = show_explanation(job, fact, form, derivations=derivations, limit=limit)
    if not holds:
        raise typer.Exit(DOES_NOT_HOLD)


@app.command()
def check(
    rules: Annotated[
        list[Path], typer.Argument(metavar="RULES", help="Files of rules.")
    ],
    syntax: SyntaxOption = Syntax.AUTO,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings are errors too.")
    ] = False,
    allow_path: AllowPath = None,
    json: Json = False,
) -> None:
    """Find mistakes in rules without running them.

    \b
    evermat check rules.dl
    evermat check --strict rules/*.dl
    """
    from evermat.cli.checking import check_files
    from evermat.cli.output import Output
    from evermat.runtime.allowed_paths import allowing

    output = Output(is_json=json)
    with allowing(allow_path or []):
        is_fine = check_files(rules, syntax, output, is_strict=strict)
    output.finish()
    if not is_fine:
        raise typer.Exit(1)


@app.command()
def fmt(
    rules: Annotated[
        list[Path], typer.Argument(metavar="RULES", help="Files of rules.")
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Change the files in place.")
    ] = False,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 if needed.")
    ] = False,
) -> None:
    """Put rules into the usual form.

    \b
    evermat fmt rules.dl              print the result
    evermat fmt --write rules/*.dl    change the files
    evermat fmt --check rules/*.dl    only tell which files would change
    """
    from evermat.cli.checking import Mode, format_files

    if write and check_only:
        message = "--write and --check do not go together"
        raise typer.BadParameter(message)
    mode = Mode.WRITE if write else Mode.CHECK if check_only else Mode.PRINT
    if not format_files(rules, mode):
        raise typer.Exit(1)


@app.command()
def algorithms(json: Json = False) -> None:
    """List the maintenance algorithms: what they are and when each is best."""
    from evermat.cli.output import Output
    from evermat.cli.run import list_algorithms

    output = Output(is_json=json)
    list_algorithms(output)
    output.finish()


@app.command("warm-up")
def warm_up() -> None:
    """Compile the embedded engine's kernels now, rather than at the first use."""
    from evermat.engines.embedded.warm_up import warm_up as compile_missing

    typer.echo(compile_missing())


@app.command()
def bench(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="materialise, maintain, modules, equality or spark"
        ),
    ],
    scale: Annotated[
        float, typer.Option(metavar="X", help="Multiply the size of every workload.")
    ] = 1.0,
    repeat: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Measure N times, show medians (equality: the least).",
            min=1,
        ),
    ] = 3,
    peers: Annotated[
        bool, typer.Option(help="Measure clingo and DuckDB too, where installed.")
    ] = True,
    only: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Run this workload alone; repeatable."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Stop a measurement after S seconds.")
    ] = 300.0,
    json_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--json", metavar="FILE", help="Write the figures to a file."),
    ] = None,
    write: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DOCUMENT", help="Replace the tables of a document."),
    ] = None,
) -> None:
    """Measure, and compare with others where they are installed.

    \b
    evermat bench materialise
    evermat bench maintain --scale 0.1 --no-peers
    """
    from evermat import bench as suites

    try:
        suites.run(
            name,
            scale=scale,
            repeat=repeat,
            peers=peers,
            only=only or (),
            time_limit=time_limit,
            json=json_file,
            write=write,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


app.command()(update)
app.add_typer(stores)
app.add_typer(pipeline)
