"""State on a lake: a Delta table that any reader of Delta tables understands.

`KnowledgeBase(rules, state=PATH)` keeps it; here is what can be done with it from the
outside. See `docs/lake.md`.
"""

from __future__ import annotations

from evermat.lake import errors  # noqa: F401  says so where it is missing
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
