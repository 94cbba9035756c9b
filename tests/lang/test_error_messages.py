"""Every message of the language, word for word.

A file `tests/errors/<name>.dl` is a program with mistakes, `<name>.txt` the text that a
user sees. After a change that is meant, write the texts anew with
`EVERMAT_REWRITE_MESSAGES=1 pytest tests/lang/test_error_messages.py` and read them.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evermat
from evermat import errors
from evermat.errors import EvermatError, ProgramError, ProgramWarning
from evermat.lang import check_program, parse_program

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent.parent / "errors"
PROJECT = FOLDER.parent.parent
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.dl"))


def shown_text(name: str) -> str:
    path = FOLDER / f"{name}.dl"
    try:
        program = parse_program(
            path.read_text(encoding="utf-8"), name=path.name, folder=FOLDER
        )
    except ProgramError as error:
        return as_seen_from_anywhere(str(error))
    report = check_program(program)
    texts = [str(warning) for warning in report.warnings]
    if report.errors:
        first, *others = report.errors
        first.others = tuple(others)
        texts.insert(0, str(first))
    return as_seen_from_anywhere("\n\n".join(texts))


def as_seen_from_anywhere(text: str) -> str:
    return text.replace(f"{FOLDER}{os.sep}", "").replace(str(FOLDER), "FOLDER") + "\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_message_is_as_written(name: str) -> None:
    golden = FOLDER / f"{name}.txt"
    text = shown_text(name)
    if os.environ.get("EVERMAT_REWRITE_MESSAGES"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_error_of_the_language_has_a_program_that_shows_it() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt"))
    abstract = {EvermatError, ProgramError, ProgramWarning}
    for error in subclasses(EvermatError):
        if error.__module__ == errors.__name__ and error not in abstract:
            assert f"{error.__name__} [{error.code}]" in shown, error.__name__


def test_codes_are_unique() -> None:
    import_everything()
    owners: dict[str, type[EvermatError]] = {}
    for error in subclasses(EvermatError):
        if "code" in vars(error) and error.__module__.startswith("evermat."):
            other = owners.setdefault(error.code, error)
            assert other is error, f"{error.code}: {other} and {error}"


def test_codes_are_listed_in_the_documentation() -> None:
    import_everything()
    text = (PROJECT / "docs" / "errors.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(EM\d{3})` \| `(\w+)` \|", text, re.MULTILINE))
    everything: list[type[EvermatError]] = [EvermatError, *subclasses(EvermatError)]
    actual = {
        error.code: error.__name__
        for error in everything
        if "code" in vars(error) and error.__module__.startswith("evermat.")
    }
    assert listed == actual


def import_everything() -> None:
    for module in pkgutil.walk_packages(evermat.__path__, "evermat."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def subclasses(error: type[EvermatError]) -> Iterator[type[EvermatError]]:
    for subclass in error.__subclasses__():
        yield subclass
        yield from subclasses(subclass)
