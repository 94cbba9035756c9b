"""What the documentation says about the language is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evermat.functions import FUNCTIONS
from evermat.lang import check_program, format_source, parse_program
from evermat.lang.directives import DIRECTIVES
from evermat.lang.types import COLUMN_TYPES, TYPE_ALIASES

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "language.md"
TEXT = REFERENCE.read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```evermat\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_of_the_reference_are_valid_and_tidy(text: str) -> None:
    assert check_program(parse_program(text)).is_fine
    assert parse_program(format_source(text)) == parse_program(text)


def test_reference_has_programs() -> None:
    assert len(PROGRAMS) >= 8


def test_example_from_python_prints_what_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (example,) = (block for block in blocks if "print(rule)" in block)
    exec(example, {})  # noqa: S102  the example is ours
    (expected,) = re.findall(r"print\(rule\)  # (.*)", example)
    assert capsys.readouterr().out.strip() == expected


def test_all_names_are_explained() -> None:
    names = [*FUNCTIONS, *COLUMN_TYPES, *TYPE_ALIASES, *DIRECTIVES, "include"]
    missing = [name for name in names if name not in TEXT]
    assert not missing
