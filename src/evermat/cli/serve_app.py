"""The commands `serve`, `shell`, `lsp` and `example`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from evermat.cli.checking import Syntax
from evermat.cli.options import (
    AlgorithmOption,
    AllowPath,
    Base,
    BudgetFacts,
    BudgetMemory,
    BudgetRounds,
    BudgetSeconds,
    EngineOption,
    Facts,
    Header,
    Json,
    Store,
    SyntaxOption,
    budget_of,
    parse_size,
)


def serve(
    rules: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(
            metavar="[RULES]", help="File of rules; with --store, not needed."
        ),
    ] = None,
    facts: Facts = None,
    store: Store = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", help="0 takes one that is free.", min=0)
    ] = 8040,
    host_name: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="NAME", help="Another name the server is known by. May be repeated."
        ),
    ] = None,
    tokens: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="TOML",
            help="Tokens with roles; needed where others can reach the server.",
        ),
    ] = None,
    limit_seconds: Annotated[
        float, typer.Option(metavar="S", help="Most seconds for a request.", min=0.1)
    ] = 30.0,
    limit_rows: Annotated[
        int, typer.Option(metavar="N", help="Most rows of an answer.", min=1)
    ] = 100_000,
    limit_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Most memory for a query.")
    ] = "1GB",
    limit_body: Annotated[
        str, typer.Option(metavar="SIZE", help="Most bytes of a body.")
    ] = "64MB",
    engine: EngineOption = "embedded",
    algorithm: AlgorithmOption = "auto",
    syntax: SyntaxOption = Syntax.AUTO,
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
    budget_rounds: BudgetRounds = None,
    budget_facts: BudgetFacts = None,
    budget_seconds: BudgetSeconds = None,
    budget_memory: BudgetMemory = None,
) -> None:
    """Serve a knowledge base over HTTP, with a console for browsers.

    Queries, updates and dry runs, explanations, versions, SPARQL, and a feed of what
    changes. Readers never wait for an update. Only this machine can reach it, unless
    --host says otherwise; then --tokens says who may do what.

    \b
    evermat serve rules.dl --facts data/
    evermat serve --store kept/ --port 9000
    evermat serve --store kept/ --host 0.0.0.0 --tokens tokens.toml
    """
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.serve import serve as start
    from evermat.results.result import require_package

    if rules is None and store is None:
        message = "needs RULES, or --store"
        raise typer.BadParameter(message)
    require_package("starlette", "server")
    from evermat.server.limits import Limits

    job = Job(
        rules=rules,
        store=store,
        facts=facts or [],
        engine=engine,
        algorithm=algorithm,
        syntax=syntax,
        header=header,
        base=base,
        allow_paths=allow_path or [],
        budget=budget_of(budget_rounds, budget_facts, budget_seconds, budget_memory),
    )
    limits = Limits(
        seconds=limit_seconds,
        rows=limit_rows,
        memory_bytes=parse_size(limit_memory),
        body_bytes=parse_size(limit_body),
    )
    start(
        job,
        Output(),
        address=(host, port),
        names=frozenset(name.lower() for name in host_name or []),
        tokens=tokens,
        limits=limits,
    )


def example(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="[NAME]", help="Without a name, they are listed."),
    ] = None,
    into: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to put it.")
    ] = Path(),
    json: Json = False,
) -> None:
    """Copy an example of the installation, to run and to modify it.

    \b
    evermat example
    evermat example access
    """
    from evermat.cli.copied_examples import copy_example, show_examples
    from evermat.cli.output import Output

    output = Output(is_json=json)
    if name is None:
        show_examples(output)
    else:
        copy_example(name, into, output)
    output.finish()


def shell(
    rules: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(metavar="[RULES]", help="File of rules, if there is one."),
    ] = None,
    facts: Facts = None,
    store: Store = None,
    engine: EngineOption = "embedded",
    syntax: SyntaxOption = Syntax.AUTO,
    header: Header = None,
    base: Base = None,
    allow_path: AllowPath = None,
) -> None:
    """Query, change and explain, line by line.

    A line is a query, a statement that ends with a full stop and is added (or removed,
    after a minus), or a command such as .explain, .plan or .undo; .help lists them.

    \b
    evermat shell rules.dl --facts data/
    evermat shell --store kept/
    """
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.cli.shell import start

    job = Job(
        rules=rules,
        store=store,
        facts=facts or [],
        engine=engine,
        syntax=syntax,
        header=header,
        base=base,
        allow_paths=allow_path or [],
    )
    start(job, Output())


def lsp() -> None:
    """Report problems to editors, by the Language Server Protocol.

    It is started by an editor, and uses standard input and output; see `editors/`.
    """
    from evermat.results.result import require_package

    require_package("pygls", "lsp")
    from evermat.language_server import server

    server().start_io()
