"""Notebook cells in Evermat's language: `%load_ext evermat.notebook`, `%%evermat`.

    %%evermat
    reach(?x, ?y) :- edge(?x, ?y) .
    edge(a, b) .

adds rules and facts to the knowledge base `kb`, and shows the changes; `%%evermat name`
uses another knowledge base. `%evermat reach(?x, ?y)` runs a query, and
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
    """The part of IPython's interface that is used here."""

    user_ns: dict[str, Any]

    def register_magic_function(
        self, func: Callable[..., object], magic_kind: str, magic_name: str
    ) -> None:
        """Register a function as a magic command."""


def load_ipython_extension(ipython: Notebook) -> None:
    """Register `%%evermat` and `%evermat`."""

    def known(name: str) -> KnowledgeBase:
        found = ipython.user_ns.get(name)
        if not isinstance(found, KnowledgeBase):
            found = ipython.user_ns[name] = KnowledgeBase()
        return found

    def cell(line: str, body: str) -> Change:
        """Add the rules and facts of a cell."""
        return known(line.strip() or _NAME).update(add_rules=body)

    def ask(line: str) -> Result | Explanation:
        """Run a query, or explain why a fact holds."""
        why = re.fullmatch(r"\s*why\s+(.*)", line, re.DOTALL)
        if why is not None:
            return known(_NAME).explain(why[1])
        return known(_NAME).query(line)

    ipython.register_magic_function(cell, "cell", "evermat")
    ipython.register_magic_function(ask, "line", "evermat")
