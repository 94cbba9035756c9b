"""States that are not there, damaged, or cannot be written."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evermat import lake
from evermat.lake.errors import StateError
from lake.states import EDGES, contents, made, opened

if TYPE_CHECKING:
    from pathlib import Path


def test_there_must_be_a_state_to_open(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is no state"):
        opened(tmp_path / "nothing")
    with pytest.raises(StateError, match="there is no state"):
        lake.history(tmp_path / "nothing")
    with pytest.raises(StateError, match="there is no state"):
        opened(tmp_path / "nothing", version=3)


def test_a_missing_library_is_named() -> None:
    code = (
        "import sys; sys.modules['deltalake'] = None; import evermat;"
        "evermat.KnowledgeBase(state='nowhere')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "EM559" in done.stderr
    assert "evermat[lake]" in done.stderr


def test_damage_is_named(tmp_path: Path) -> None:
    made(tmp_path).insert("edge", EDGES)
    file = max(
        (tmp_path / "part=facts").iterdir(), key=lambda file: file.stat().st_size
    )
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StateError, match="cannot read `part=facts/"):
        opened(tmp_path)
    file.unlink()
    with pytest.raises(StateError, match="missing"):
        opened(tmp_path)
    file.write_bytes(whole)
    log = tmp_path / "_delta_log" / "00000000000000000002.json"
    log.write_text("{ no JSON")
    with pytest.raises(StateError, match=r"cannot read `_delta_log/0+2\.json`"):
        opened(tmp_path)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    kb = made(tmp_path)
    kb.insert("edge", EDGES)
    before = contents(kb)
    (tmp_path / "part=facts").rename(tmp_path / "away")
    (tmp_path / "part=facts").write_text("in the way")
    with pytest.raises(StateError, match="cannot write `part=facts/"):
        kb.insert("edge", [("x", "y")])
    assert contents(kb) == before
    (tmp_path / "part=facts").unlink()
    (tmp_path / "away").rename(tmp_path / "part=facts")
    kb.insert("edge", [("x", "y")])
    assert contents(opened(tmp_path)) == contents(kb)


def test_a_state_needs_a_folder_of_its_own(tmp_path: Path) -> None:
    precious = tmp_path / "edge.csv"
    precious.write_text("a,b\n", encoding="utf-8")
    with pytest.raises(StateError, match=r"other files, such as `edge\.csv`"):
        made(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["edge.csv"]
    precious.rename(tmp_path / ".hidden")
    made(tmp_path)
    assert lake.vacuum(tmp_path) == []
    assert (tmp_path / ".hidden").exists()
