"""The README as the description of the package on an index such as PyPI.

Links and pictures of the README are relative to the sources. An index has no sources:
there, they lead to the repository, or, where none is named, only their text stays.
"""

from __future__ import annotations

import re

_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def description(readme: str, repository: str | None, version: str) -> str:
    """The text of the README with links that work anywhere.

    Args:
        readme: the README.
        repository: the address of the repository, which has files under `/blob/TAG/`
            and `/raw/TAG/`, as those of GitHub, GitLab and Forgejo do.
        version: of the package; its tag begins with a `v`.
    """

    def absolute(found: re.Match[str]) -> str:
        target, text = found["target"], found["text"]
        if "://" in target:
            return found[0]
        if repository is None:
            return "" if found["mark"] else text
        kind = "raw" if found["mark"] else "blob"
        place = f"{repository.rstrip('/')}/{kind}/v{version}/{target}"
        return f"{found['mark']}[{text}]({place})"

    parts = _FENCED.split(readme)
    return "".join(
        part if at % 2 else _LINK.sub(absolute, part) for at, part in enumerate(parts)
    )
