"""States of versions whose built-ins read representatives only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat import KnowledgeBase
from evermat.lang import equality

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RULES = "?x ≈ ?y :- email(?x, ?m), email(?y, ?m) . a(?x) :- q(?x), starts_with(?x, b) ."
FACTS = {"email": [("ann", "m"), ("bob", "m")], "q": [("ann",), ("cem",)]}


def test_names_that_a_state_lacks_are_made_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine_name: str
) -> None:
    place = tmp_path / "state"
    with monkeypatch.context() as older:
        older.setattr(equality, "names_read", lambda *_: ())
        kb = KnowledgeBase(RULES, engine=engine_name, equality="rewrite", state=place)
        kb.load(FACTS)
        assert kb["a"].to_list() == []
        version = kb.version
    reader = KnowledgeBase.open(place, engine=engine_name, version=version)
    assert set(reader["a"]) == {("ann",), ("bob",)}
    opened = KnowledgeBase.open(place, engine=engine_name)
    assert set(opened["a"]) == {("ann",), ("bob",)}
    assert opened.version != version
    again = KnowledgeBase.open(place, engine=engine_name)
    assert again.version == opened.version
    again.delete("q", [("ann",)])
    assert again["a"].to_list() == []
