"""The site is built from the pages and docstrings, without a warning."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evermat import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).resolve().parent.parent


def description() -> Callable[..., str]:
    found: Callable[..., str] = runpy.run_path(
        str(PROJECT / "docs" / "site" / "description.py")
    )["description"]
    return found


def test_the_description_of_the_package_has_no_link_that_leads_nowhere() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    repository = "https://code.example.org/evermat"
    links = re.compile(r"\]\(([^)]*)\)")
    there = description()(readme, repository, "1.2.3")
    targets = links.findall(there)
    assert len(targets) == len(links.findall(readme)) > 20
    for target in targets:
        kind, tag, *path = target.removeprefix(f"{repository}/").split("/")
        assert kind == ("raw" if target.endswith(".svg") else "blob")
        assert tag == "v1.2.3"
        assert PROJECT.joinpath(*path).is_file(), target


def test_without_a_repository_only_the_text_of_links_stays() -> None:
    readme = "a [b](c.md) ![p](p.svg) [d](https://e.org)\n```\n[x](y.md)\n```\n"
    made = description()(readme, None, "1")
    assert made == "a b  [d](https://e.org)\n```\n[x](y.md)\n```\n"


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
