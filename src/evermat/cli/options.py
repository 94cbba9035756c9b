"""Options that several commands share, and parsing of amounts of memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from evermat.cli.checking import Syntax

if TYPE_CHECKING:
    from evermat.maintenance.limits import Budget


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 96}
"""The options of help, and its width."""

Rules = Annotated[
    Path, typer.Argument(metavar="RULES", help="File of rules.", show_default=False)
]
Facts = Annotated[
    Optional[list[str]],  # noqa: UP045  read by typer while running
    typer.Option(
        "--facts",
        "-f",
        metavar="FILE|DIR|PRED=FILE",
        help="Facts: a file named after its predicate (edge.csv), a folder of such "
        "files, or PRED=FILE. RDF files go to `triple`. May be repeated.",
    ),
]
Header = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--header/--no-header",
        help="Whether CSV and TSV files begin with names of columns. By default they "
        "do if these are the names that the program declares, in any order and case.",
        show_default=False,
    ),
]
Base = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="IRI", help="What relative IRIs in RDF files begin with."),
]
AllowPath = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option(
        metavar="DIR",
        help="Let the rules include and import files there, too. May be repeated.",
    ),
]
SyntaxOption = Annotated[
    Syntax,
    typer.Option("--syntax", help="How the rules are written; auto goes by suffix."),
]


def known_engine(name: str | None) -> str | None:
    """Check that an engine exists."""
    from evermat.engines import ENGINES

    if name is None or name in ENGINES:
        return name
    message = f"there is no engine `{name}`; use {', '.join(sorted(ENGINES))}"
    raise typer.BadParameter(message)


def known_algorithm(name: str) -> str:
    """Check that an algorithm exists."""
    if name == "auto":
        return name
    from evermat.maintenance.algorithms import NAMES

    if name in NAMES:
        return name
    message = f"there is no algorithm `{name}`; choose from {', '.join(NAMES)}"
    raise typer.BadParameter(message)


def known_format(suffix: str) -> str:
    """Check that a format can be written, before any work is done."""
    if suffix == "csv":
        return suffix
    from evermat.io.files import UnknownFormatError, data_file
    from evermat.io.writing import require_writable

    try:
        require_writable(data_file(Path(f"facts.{suffix.lstrip('.')}")))
    except UnknownFormatError as error:
        known = "csv, tsv, facts, parquet, arrow, feather, nt, nq, ttl, trig or rdf"
        message = f"there is no format `{suffix}`; use {known}"
        raise typer.BadParameter(message) from error
    return suffix


EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="embedded, reference or spark.",
        callback=known_engine,
    ),
]
Store = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--store",
        metavar="PLACE",
        help="A folder or URI where the materialisation is kept from run to run.",
        show_default=False,
    ),
]
Version = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--at", metavar="VERSION", help="An old version of --store.", min=0),
]
Show = Annotated[
    int, typer.Option(metavar="N", help="Show N rows of each change.", min=0)
]


def known_policy(word: str) -> str:
    """Check a policy for contradictions."""
    if word in {"report", "refuse"}:
        return word
    message = f"contradictions are `report`ed or `refuse`d, not `{word}`"
    raise typer.BadParameter(message)


ContradictionsOption = Annotated[
    str,
    typer.Option(
        "--contradictions",
        metavar="POLICY",
        help="What rules with the head `false` derive: report it, or refuse updates "
        "that bring it.",
        callback=known_policy,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what the updates would change.")
]
AlgorithmOption = Annotated[
    str,
    typer.Option(
        "--algorithm",
        metavar="NAME",
        help="How updates are maintained; `evermat algorithms` lists the names.",
        callback=known_algorithm,
    ),
]
BudgetRounds = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Most rounds in one stratum.", min=1),
]
BudgetFacts = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Most facts that a run may derive.", min=1),
]
BudgetSeconds = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(metavar="S", help="Most seconds for a run.", min=0),
]
BudgetMemory = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="SIZE", help="Most memory, such as 500MB or 2GB."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document, nothing else.")]


def budget_of(
    rounds: int | None, facts: int | None, seconds: float | None, memory: str | None
) -> Budget:
    """Return the budget of the options."""
    from evermat.maintenance.limits import Budget

    return Budget(
        rounds, facts, seconds, None if memory is None else parse_size(memory)
    )


# -------------------------------------------------------------------------------- sizes


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(text: str) -> int:
    """Parse the number of bytes in `500MB`, `2 GiB` or `1000000`.

    >>> parse_size("2GB"), parse_size("1KiB")
    (2000000000, 1024)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if match is None or (match[3] and not match[2]):
        message = f"`{text}` is no amount of memory; write 500MB or 2GiB"
        raise typer.BadParameter(message)
    unit = _BINARY[match[2]] if match[3] else _UNITS[match[2]]
    return int(float(match[1]) * unit)
