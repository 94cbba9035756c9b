"""`evermat example`: the examples of the installation, to run and to modify."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from evermat.cli.output import Output

EXAMPLES = {
    "access": (
        "who may open what in a company that reorganises",
        "evermat run access/rules.dl --facts access/facts --then access/monday.toml",
    ),
    "flights": (
        "arithmetic, strings, and what is cheapest",
        (
            "evermat run flights/rules.dl --facts flights/flight.csv "
            "--then flights/strike.toml"
        ),
    ),
    "museum": (
        "RDF data and an ontology as rules over triples",
        (
            "evermat query museum/rules.dl --facts museum/museum.ttl "
            "'abroad(?work, ?country)'"
        ),
    ),
}


class ExampleError(EvermatError, ValueError):
    """An example that does not exist, or whose target exists already."""

    code: ClassVar[str] = "EM569"


def show_examples(output: Output) -> None:
    """Print a table of the examples."""
    output.document["examples"] = {name: about for name, (about, _) in EXAMPLES.items()}
    output.table(
        ["example", "shows"], [[name, about] for name, (about, _) in EXAMPLES.items()]
    )


def copy_example(name: str, folder: Path, output: Output) -> None:
    """Copy an example into a folder, and print how to run it.

    Raises:
        ExampleError: there is none of that name, or the target exists already.
    """
    if name not in EXAMPLES:
        raise ExampleError(
            f"there is no example `{name}`",
            help=f"there are {', '.join(EXAMPLES)}",
        )
    target = folder / name
    if target.exists():
        raise ExampleError(
            f"`{target}` is there already", help="name another folder with --into"
        )
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_home() / name, target, ignore=ignored)
    _, command = EXAMPLES[name]
    output.document |= {"folder": str(target), "command": command}
    output.say(f"copied to {target}; try")
    output.say(f"  {command}")
    if name == "access":
        output.say("  evermat serve access/rules.dl --facts access/facts")


def _home() -> Path:
    """Return the folder of the examples: in the package, or in a clone."""
    package = Path(str(files("evermat")))
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"
