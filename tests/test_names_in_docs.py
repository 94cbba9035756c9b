"""Pages and docstrings name files and things that exist.

What stands between backticks is looked at in three ways: `folder/file.py` must be a
file, `evermat.module.name` must be there to be imported, and where `module` is one of
ours, the name in `module.name` must be defined somewhere. The last is a weak claim:
`engine.close` is as often a method of an object as a function of a module.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for top in ("src", "tests", "examples", "docs")
    for path in PROJECT.glob(f"{top}/**/*.py")
) + sorted(PROJECT.glob("*.py"))
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]+\.py")
FULL_NAME = re.compile(r"evermat(?:\.[a-zA-Z]\w*)+")
DOTTED = re.compile(r"([a-z]\w*)((?:\.[a-zA-Z]\w*)+)(?:\(.*)?")
NOT_OURS = {"session", "program", "spark"}
"""Modules of ours whose names also stand for things of others, and for files."""


def quoted(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return set(QUOTED.findall(BLOCK.sub("", text) if path.suffix == ".md" else text))


def defined(path: Path) -> set[str]:
    """All names that a file gives to something, attributes of objects included."""
    names = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
    return names


@pytest.fixture(scope="module")
def known() -> set[str]:
    return set().union(*(defined(path) for path in SOURCES))


def can_be_imported(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("evermat"):
                return True  # it is there, and needs a package that is not
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def named_file_exists(name: str) -> bool:
    return any(f"/{path.relative_to(PROJECT)}".endswith(f"/{name}") for path in SOURCES)


def is_true(text: str, modules: set[str], known: set[str]) -> bool:
    if FILE.fullmatch(text):
        return named_file_exists(text)
    if FULL_NAME.fullmatch(text):
        return can_be_imported(text)
    found = DOTTED.fullmatch(text)
    if found is None or found[1] not in modules:
        return True
    return known.issuperset(found[2].split(".")[1:])


def test_what_is_named_exists(known: set[str]) -> None:
    modules = {path.stem for path in SOURCES} - NOT_OURS
    pages = [path for path in (*PAGES, *SOURCES) if path != Path(__file__)]
    untrue = {
        (str(page.relative_to(PROJECT)), text)
        for page in pages
        for text in quoted(page)
        if not is_true(text, modules, known)
    }
    assert untrue == set()


@pytest.mark.parametrize(
    "text",
    ["evermat.algebra.Nothing", "evermat.nothing", "evermat.algebra.Query.nothing"],
)
def test_a_name_that_is_not_there_is_noticed(text: str) -> None:
    assert FULL_NAME.fullmatch(text)
    assert not can_be_imported(text)


@pytest.mark.parametrize(
    "package",
    ["evermat.maintenance", "evermat.engines.embedded", "evermat.engines.spark"],
)
def test_the_map_of_a_package_names_its_modules(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__ is not None
    folder = Path(str(module.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    modules |= {
        f"{path.parent.name}.{path.stem}"
        for path in folder.glob("*/*.py")
        if path.stem != "__init__"
    }
    rows = re.findall(r"^\|[^|]*\|(.*)\|$", module.__doc__, re.MULTILINE)
    named = {name for row in rows for name in QUOTED.findall(row)} - {"auto"}
    assert named <= modules
    # Compiled loops are found by the modules that they belong to.
    loops = {name for name in modules if name.startswith("kernels.")}
    assert modules - loops <= set(QUOTED.findall(module.__doc__))
