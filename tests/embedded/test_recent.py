"""What was made for rules is forgotten when nothing asks for it any more."""

from __future__ import annotations

from evermat.engines.embedded.triggers import UPDATES, Recent


def test_what_is_asked_for_stays_and_the_rest_goes() -> None:
    recent: Recent[str, int] = Recent()
    recent["used"], recent["unused"] = 1, 2
    for _ in range(3 * UPDATES):
        assert recent.get("used") == 1
        recent.note_update()
    assert recent.get("unused") is None
    recent.clear()
    assert recent.get("used") is None
