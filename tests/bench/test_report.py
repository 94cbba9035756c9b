from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from evermat.bench.report import (
    Table,
    count_text,
    machine_text,
    markdown,
    plain,
    ratio_text,
    rewrite,
    seconds_text,
    show,
    verdict,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

TABLE = Table("Times", ("what", "time"), (("a", "1 s"), ("longer", "12 s")), ("Note.",))


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.00123, "1.23 ms"), (1.234, "1.23 s"), (123.45, "123.5 s")],
)
def test_seconds_are_short(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "–"), (980, "980"), (22_400, "22.4 k"), (1_348_650, "1.35 M")],
)
def test_counts_are_short(count: int | None, text: str) -> None:
    assert count_text(count) == text


def test_ratios_and_verdicts_need_both_figures() -> None:
    assert ratio_text(3.0, 2.0) == "1.50×"
    assert ratio_text(3.0, None) == "–"
    assert ratio_text(None, 2.0) == "–"
    assert verdict(1.0, 2.0) == "yes"
    assert verdict(3.0, 2.0) == "no"
    assert verdict(None, 2.0) == "–"


def test_plain_tables_have_columns_of_blanks() -> None:
    lines = plain(TABLE).splitlines()
    assert lines == [
        "Times",
        "",
        "what    time",
        "a        1 s",
        "longer  12 s",
        "Note.",
    ]


def test_markdown_tables_align_figures_to_the_right() -> None:
    lines = markdown(TABLE).splitlines()
    assert lines[2:6] == [
        "| what | time |",
        "| --- | ---: |",
        "| a | 1 s |",
        "| longer | 12 s |",
    ]


def test_a_terminal_gets_a_drawn_table_and_a_pipe_a_plain_one() -> None:
    terminal, pipe = _Terminal(), io.StringIO()
    show(TABLE, terminal)
    show(TABLE, pipe)
    assert "┃" in terminal.getvalue()
    assert pipe.getvalue() == plain(TABLE) + "\n"


def test_rewriting_replaces_only_the_part_of_the_suite(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "before\n<!-- bench x -->\nold\n<!-- end of bench x -->\nafter\n",
        encoding="utf-8",
    )
    rewrite(path, "x", "new")
    rewrite(path, "x", "newer")
    expected = "before\n<!-- bench x -->\n\nnewer\n<!-- end of bench x -->\nafter\n"
    assert path.read_text(encoding="utf-8") == expected
    with pytest.raises(ValueError, match="bench y"):
        rewrite(path, "y", "new")


def test_json_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_json(path, {"suite": "x"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"suite": "x"}


def test_the_machine_is_named() -> None:
    assert "Python" in machine_text()
