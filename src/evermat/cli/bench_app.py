"""The benchmark commands: `evermat bench …`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Optional

import typer

from evermat.bench import SUITES
from evermat.cli.options import CONTEXT
from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evermat.bench.own import OwnUpdate
    from evermat.cli.facts import FactReader
    from evermat.cli.updates import UpdateFile

JsonFile = Annotated[
    Optional[Path],  # noqa: UP045  read by typer while running
    typer.Option("--json", metavar="FILE", help="Write the figures to a file."),
]
TimeLimit = Annotated[
    float, typer.Option(metavar="S", help="Stop a measurement after S seconds.")
]
Scale = Annotated[
    float, typer.Option(metavar="X", help="Multiply the size of every workload.")
]
Only = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(metavar="NAME", help="Run this workload alone; repeatable."),
]

benchmarks = typer.Typer(
    name="bench",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=CONTEXT,
    help="""Measure, and compare with others where they are installed.

    \b
    evermat bench materialise                        a suite of the package
    evermat bench maintain --scale 0.1 --no-peers
    evermat bench run --program rules.dl --facts data/ --updates days/
    evermat bench report figures.json --out page.html
    evermat bench compare before.json after.json
    """,
)


class FiguresError(EvermatError, ValueError):
    """A file without figures of `evermat bench`."""

    code: ClassVar[str] = "EM579"


# -------------------------------------------------------------------------- suites

_TITLES = {
    "materialise": "Materialisation, beside clingo and DuckDB.",
    "maintain": "Every algorithm on every sort of update.",
    "modules": "Closures, with modules and without.",
    "equality": "Rewriting against axioms.",
    "spark": "The Spark engine.",
    "server": "The server.",
    "rdf": "RDF: reading, reasoning and SPARQL, beside other libraries.",
    "aggregates": "Aggregates, beside DuckDB and Dijkstra's algorithm.",
    "paper": "The tables of the papers, beside the papers' figures.",
}


def _suite(name: str) -> Callable[..., None]:
    def measure(
        scale: Scale = 1.0,
        repeat: Annotated[
            int,
            typer.Option(
                metavar="N",
                help="Measure N times, show medians (equality: the least).",
                min=1,
            ),
        ] = 3,
        peers: Annotated[
            bool,
            typer.Option(help="Measure clingo and DuckDB too, where installed."),
        ] = True,
        only: Only = None,
        time_limit: TimeLimit = 300.0,
        json_file: JsonFile = None,
        write: Annotated[
            Optional[Path],  # noqa: UP045
            typer.Option(metavar="DOCUMENT", help="Replace the tables of a document."),
        ] = None,
    ) -> None:
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

    measure.__doc__ = _TITLES[name]
    return measure


for _name in SUITES:
    benchmarks.command(_name)(_suite(_name))


# ----------------------------------------------------------------------- one's own


@benchmarks.command("run")
def run_own(
    program: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="Rules; may be repeated.", show_default=False
        ),
    ],
    facts: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|DIR|PRED=FILE",
            help="Facts, as for `evermat run`; may be repeated.",
            show_default=False,
        ),
    ],
    updates: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            metavar="DIR|TOML",
            help="An update, or a folder of updates in order, as `evermat run --then` "
            "takes them; without it, random facts are deleted and inserted again.",
        ),
    ] = None,
    way: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="NAME", help="An algorithm, or `default`; all without it."
        ),
    ] = None,
    time_limit: TimeLimit = 300.0,
    json_file: JsonFile = None,
) -> None:
    """Run every algorithm on your own program, facts and updates."""
    from dataclasses import asdict

    from evermat.api import KnowledgeBase
    from evermat.bench import report
    from evermat.bench.own import WAYS, measure_own, tables
    from evermat.cli.facts import FactReader
    from evermat.runtime.input_limits import allowing

    unknown = [name for name in way or () if name not in WAYS]
    if unknown:
        names = ", ".join(WAYS)
        raise typer.BadParameter(f"there is no way `{unknown[0]}`; there are {names}")
    folders = [path if path.is_dir() else path.parent for path in updates or ()]
    with allowing([*folders, *(path.parent for path in program)]):
        base = KnowledgeBase(list(program))
        reader = FactReader(base.catalogue, rules=lambda: base.rules)
        data = reader.read(facts)
        steps = list(_updates(updates or [], reader) if updates else _random(data))
        found = measure_own(
            list(program), data, steps, ways=way or WAYS, time_limit=time_limit
        )
    for table in tables(found):
        report.show(table)
    if json_file is not None:
        content: dict[str, object] = {
            "suite": "run",
            "machine": report.machine(),
            "options": {"scale": 1.0, "program": [str(path) for path in program]},
            **asdict(found),
        }
        report.write_json(json_file, content)
    if found.disagreements:
        raise typer.Exit(1)


def _updates(places: list[Path], reader: FactReader) -> Iterator[OwnUpdate]:
    from evermat.bench.own import OwnUpdate
    from evermat.cli.updates import read_update

    for place in places:
        for path in _several(place):
            read: UpdateFile = read_update(path, reader)
            arguments: dict[str, Any] = {
                "insert": read.insert or None,
                "delete": read.delete or None,
                "add_rules": read.add_rules,
                "remove_rules": read.remove_rules,
            }
            if read.replace:
                arguments["replace"] = read.replace
            yield OwnUpdate(read.name, arguments)


def _several(place: Path) -> list[Path]:
    """Return the updates in a folder, or the one that it is."""
    if not place.is_dir():
        return [place]
    inside = sorted(place.iterdir())
    parts = ("insert", "delete", "replace")
    if any(each.name in parts or each.name.startswith("rules") for each in inside):
        return [place]
    return [each for each in inside if each.is_dir() or each.suffix == ".toml"]


_PARTS = (1, 100)
_SHARES = (0.01, 0.1)


def _random(data: dict[str, Any]) -> Iterator[OwnUpdate]:
    """Yield deletions of facts and their reinsertions, in several sizes."""
    from evermat.bench.generators.problem import Problem, sample
    from evermat.bench.own import OwnUpdate

    problem = Problem("", data)
    counts = {
        count
        for count in (*_PARTS, *(round(share * problem.size) for share in _SHARES))
        if 0 < count <= problem.size
    }
    for count in sorted(counts):
        rows = sample(problem, count, seed=count)
        yield OwnUpdate(f"delete {count:,}", {"delete": rows})
        yield OwnUpdate(f"insert {count:,}", {"insert": rows})


# ------------------------------------------------------------------ files of figures


@benchmarks.command("export")
def export_workloads(
    folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    scale: Scale = 0.1,
    only: Only = None,
) -> None:
    """Write workloads for other systems: rules, facts, updates, and answers."""
    from evermat.bench.exporting import export

    try:
        for path in export(folder, scale=scale, only=only or ()):
            typer.echo(str(path))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Figures = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE…", help="Files that `--json` wrote.", show_default=False
    ),
]


@benchmarks.command("report")
def write_report(
    figures: Figures,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page to write.")
    ] = Path("evermat-bench.html"),
) -> None:
    """Write a self-contained page with plots."""
    from evermat.bench.page import page

    contents = [_read(path) for path in figures]
    try:
        text = page(contents)
    except (ValueError, KeyError, TypeError) as error:
        raise FiguresError(
            f"there is no page about these figures: {error}",
            help="give files that `evermat bench … --json` wrote",
        ) from error
    out.write_text(text, encoding="utf-8")
    typer.echo(str(out))


@benchmarks.command("compare")
def compare_figures(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="AFTER", show_default=False)],
) -> None:
    """Distinguish regressions from noise; exit with 1 if something became slower."""
    from evermat.bench import report
    from evermat.bench.comparing import compare, tables

    try:
        found = compare(_read(before), _read(after))
    except ValueError as error:
        raise FiguresError(
            f"`{before}` and `{after}` cannot be compared: {error}",
            help="give two files that the same `evermat bench … --json` wrote",
        ) from error
    for table in tables(found):
        report.show(table)
    if found.slower:
        raise typer.Exit(1)


def _read(path: Path) -> dict[str, Any]:
    """Read figures written with `--json`.

    Raises:
        FiguresError: the file has no figures.
    """
    from evermat.io.files import FileMissingError

    if not path.is_file():
        raise FileMissingError(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FiguresError(f"`{path}` is not JSON: {error}") from error
    if not isinstance(content, dict) or "suite" not in content:
        raise FiguresError(
            f"`{path}` has no figures",
            help="give files that `evermat bench … --json` wrote",
        )
    return content
