"""The commands and their options, implemented in the other modules of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from evermat import __version__
from evermat.cli import DOES_NOT_HOLD
from evermat.cli.bench_app import benchmarks
from evermat.cli.checking import Syntax
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
from evermat.cli.serve_app import example, lsp, serve, shell
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
    evermat fmt --write rules.dl                           format them
    evermat run rules.dl --facts data/ --store kept/       materialise and store
    evermat update --store kept/ --delete gone/edge.csv    maintain a stored state
    evermat query --store kept/ 'reach(?x, "c")'           query a stored state
    evermat pipeline run pipeline.toml                     sources to outputs, on Spark

    Results go to standard output, progress and errors to standard error. Tables are
    drawn on a terminal; in a pipe they are lines with tabs. --json gives one document.

    \b
    Exit codes:  0  all went well
                 1  a program, facts or an update are wrong
                 2  the command line is wrong
                 3  a budget was exceeded
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
    """Options that come before a command."""
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
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="DIR|DATABASE",
            help="Write the outputs of the program, or all derived predicates, here: "
            "files of a folder, or tables of postgresql://…, sqlite:///file.db, …",
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
    contradictions: ContradictionsOption = "report",
    dry_run: DryRun = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Show what each rule costs.")
    ] = False,
    budget_rounds: BudgetRounds = None,
    budget_facts: BudgetFacts = None,
    budget_seconds: BudgetSeconds = None,
    budget_memory: BudgetMemory = None,
    json: Json = False,
) -> None:
    """Materialise a program over facts, then apply updates one after the other.

    With --store the result is kept, and every update is a new version. An existing
    store is continued: its rules are replaced by RULES, and the facts are added.

    \b
    evermat run rules.dl --facts edge.csv
    evermat run rules.dl -f data/ -f extra.ttl --out results/ --format parquet
    evermat run rules.dl -f data/ --then monday.toml --then tuesday/ --show 3
    evermat run rules.dl -f data/ --then monday.toml --dry-run
    evermat run program.dl --syntax souffle --facts facts/ --out out/
    evermat run rules.dl -f data/ --store kept/
    """
    from evermat.cli.contradictions import policy_of
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.run import run_job
    from evermat.io.databases import is_database

    job = Job(
        rules=rules,
        store=store,
        facts=facts or [],
        updates=then or [],
        out=None if out is None or is_database(out) else Path(out),
        database=out if out is not None and is_database(out) else None,
        form=form,
        show=show,
        engine=engine,
        algorithm=algorithm,
        syntax=syntax,
        header=header,
        base=base,
        is_dry_run=dry_run,
        is_profiled=profile,
        contradictions=policy_of(contradictions),
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
            help="File of rules, unless there is --store; and a query such as "
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
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="FILE|DATABASE",
            help="Write the answers to a file instead, or to a table of a database "
            "(postgresql://…?table=answers).",
        ),
    ] = None,
    sparql: Annotated[
        bool,
        typer.Option(
            "--sparql", help="The query is in SPARQL, about the triples that hold."
        ),
    ] = False,
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
    """Materialise a program over facts, or open a store, and answer a query.

    A query is a conjunction of atoms, negated atoms and comparisons; its variables
    are the columns of the answer. A query without variables is answered yes or no.

    \b
    evermat query rules.dl -f data/ 'reach(?x, "c"), not blocked(?x)'
    evermat query rules.dl -f data/ 'price(?item, ?p), ?p > 100' --json
    evermat query rules.dl -f data/ 'reach("a", "c")'
    evermat query --store kept/ 'reach("a", ?x)' --at 3
    evermat query ontology.ttl -f data.ttl --sparql 'SELECT ?x { ?x a :Person }'
    """
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.run import answer, answer_sparql

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
    if sparql:
        answer_sparql(job, question, output, limit=limit, out=out)
    else:
        answer(job, question, output, limit=limit, out=out)
    output.finish()


def _rules_and(
    what: str,
    words: list[str],
    store: str | None,
    at: int | None,
    facts: list[str] | None,
) -> tuple[Path | None, str]:
    """Return the rules and the query or fact; a store has its own rules and facts."""
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
    down to explicit facts. It is a proof of least height; of several, the one whose
    rules come first. If the fact does not hold, the exit code is 4.

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
    facts: Facts = None,
    shapes: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="FILE", help="Shapes of SHACL that the facts are to satisfy."
        ),
    ] = None,
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
    json: Json = False,
) -> None:
    """Find mistakes in rules without running them.

    With --facts the rules are run, and contradictions shown with their proofs: what
    rules with the head `false` derive, axioms of ontologies among them.

    \b
    evermat check rules.dl
    evermat check --strict rules/*.dl
    evermat check ontology.ttl --facts data.ttl --shapes shapes.ttl
    """
    from evermat.cli.checking import check_files
    from evermat.cli.contradictions import check_facts
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.runtime.input_limits import allowing

    output = Output(is_json=json)
    with allowing(allow_path or []):
        is_fine = check_files(rules, syntax, output, is_strict=strict)
        if shapes is not None and not facts:
            message = "shapes are checked on facts: give --facts"
            raise typer.BadParameter(message)
        if facts and is_fine:
            if len(rules) > 1:
                message = "with --facts there is one file of rules"
                raise typer.BadParameter(message)
            job = Job(
                rules=rules[0], facts=facts, syntax=syntax, header=header, base=base
            )
            is_fine = check_facts(job, output, shapes)
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
    """Format rules.

    \b
    evermat fmt rules.dl              print the result
    evermat fmt --write rules/*.dl    change the files
    evermat fmt --check rules/*.dl    only list the files that would change
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
    """List the maintenance algorithms, and when each is best."""
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


app.command()(update)
app.command()(serve)
app.command()(example)
app.command()(shell)
app.command()(lsp)
app.add_typer(benchmarks)
app.add_typer(stores)
app.add_typer(pipeline)
