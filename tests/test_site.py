"""The site is built from the pages and docstrings, without a warning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from evermat import KnowledgeBase

PROJECT = Path(__file__).resolve().parent.parent


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    done = subprocess.run(
        [*command, str(tmp_path / "site")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    front = (site / "index.html").read_text(encoding="utf-8")
    assert "pictures/proof.svg" in front
    reference = site / "reference" / "knowledge_base" / "index.html"
    first_line = (KnowledgeBase.replace.__doc__ or "").partition("\n")[0].rstrip(".")
    assert first_line
    assert first_line in reference.read_text(encoding="utf-8")
    assert (site / "tutorials" / "tables" / "index.html").is_file()
    assert not (site / "site").exists()
