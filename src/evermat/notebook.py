"""Cells of notebooks in the language: `%load_ext evermat.notebook`, then `%%evermat`.

    %%evermat
    reach(?x, ?y) :- edge(?x, ?y) .
    edge(a, b) .

adds rules and facts to the knowledge base `kb`, and shows what changed;
`%%evermat name` speaks of another. `%evermat reach(?x, ?y)` asks a query, and
`%evermat why reach(a, b)` draws a proof.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from evermat.api import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.explain.explanation import Explanation
    from evermat.results.change import Change
    from evermat.results.result import Result

_NAME = "kb"


class Notebook(Protocol):
    """What of IPython is used here."""

    user_ns: dict[str, Any]

    def register_magic_function(
        self, func: Callable[..., object], magic_kind: str, magic_name: str
    ) -> None:
        """Make a function known as a magic word."""


def load_ipython_extension(ipython: Notebook) -> None:
    """Make `%%evermat` and `%evermat` known."""

    def known(name: str) -> KnowledgeBase:
        found = ipython.user_ns.get(name)
        if not isinstance(found, KnowledgeBase):
            found = ipython.user_ns[name] = KnowledgeBase()
        return found

    def cell(line: str, body: str) -> Change:
        """Add the rules and facts of a cell."""
        return known(line.strip() or _NAME).update(add_rules=body)

    def ask(line: str) -> Result | Explanation:
        """Ask a query, or why a fact holds."""
        why = re.fullmatch(r"\s*why\s+(.*)", line, re.DOTALL)
        if why is not None:
            return known(_NAME).explain(why[1])
        return known(_NAME).query(line)

    ipython.register_magic_function(cell, "cell", "evermat")
    ipython.register_magic_function(ask, "line", "evermat")
