"""States for tests, and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import evermat

if TYPE_CHECKING:
    from pathlib import Path

    from evermat import KnowledgeBase

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    far(?x, ?y) :- reach(?x, ?y), not edge(?x, ?y) .
    lonely(?x) :- node(?x), not edge(?x, ?y) .
    any() :- node(?x) .
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "a"), (1, 2.5)]


def contents(kb: KnowledgeBase) -> dict[str, Any]:
    """Everything that a knowledge base holds, counts included."""
    found: dict[str, Any] = {"rules": {str(rule) for rule in kb.rules}}
    for name in kb.predicates:
        if not kb.count(name):
            continue
        found[name] = (
            set(kb.facts(name)),
            set(kb.facts(name, "explicit")),
            set(kb.counters(name)),
        )
    return found


def made(path: Path, engine_name: str = "embedded") -> KnowledgeBase:
    return evermat.KnowledgeBase(RULES, engine=engine_name, state=path)


def opened(path: Path, engine_name: str = "embedded", **more: Any) -> KnowledgeBase:
    return evermat.KnowledgeBase.open(path, engine=engine_name, **more)
