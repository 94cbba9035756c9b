"""What the site does with pages that are also read beside the sources.

Links to files of the sources lead nowhere on the site: their text stays. Pages of
decisions are listed by their folder, not by hand.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^```", re.MULTILINE)


def on_config(config: Any) -> Any:  # noqa: ANN401  of mkdocs
    """Put the decisions into the navigation, in order."""
    folder = PurePosixPath("decisions")
    pages = sorted(Path(config.docs_dir, folder).glob("*.md"))
    hood = next(part for part in config.nav if "Under the hood" in part)
    hood["Under the hood"].append(
        {"Decisions": [str(folder / page.name) for page in pages]}
    )
    return config


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:  # noqa: ANN401
    """Keep only the text of links that leave the documentation."""
    here = PurePosixPath(page.file.src_uri).parent
    parts = _FENCE.split(markdown)

    def plain(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith(("mailto:", "/")):
            return found[0]
        depth = len([part for part in here.parts if part != "."])
        ups = 0
        for part in PurePosixPath(target).parts:
            if part != "..":
                break
            ups += 1
        leaves = ups > depth or target.endswith("/")
        return found[1] if leaves else found[0]

    # Every other part is inside of a block of code.
    return "```".join(
        part if number % 2 else _LINK.sub(plain, part)
        for number, part in enumerate(parts)
    )
