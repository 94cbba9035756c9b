"""States of knowledge bases on a lake, as standard Delta tables.

`KnowledgeBase(rules, state=PATH)` writes the state; this package reads and manages it
from the outside. See `docs/lake.md`.
"""

from __future__ import annotations

from evermat.lake import errors  # noqa: F401  explains a missing library
from evermat.lake.feed import FactChange, change_table, changes, read
from evermat.lake.integrity import Problem, Verification, verify
from evermat.lake.versions import Version, history, restore, vacuum

__all__ = [
    "FactChange",
    "Problem",
    "Verification",
    "Version",
    "change_table",
    "changes",
    "history",
    "read",
    "restore",
    "vacuum",
    "verify",
]
