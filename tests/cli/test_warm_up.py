"""Kernels can be compiled before they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.cli import OK, run
from evermat.engines.embedded import warm_up
from evermat.engines.embedded.kernel_sources import Image

if TYPE_CHECKING:
    import pytest

IMAGE = Image("key", [], {"processor": "znver3"}, {"a": b"", "b": b""})


def test_it_says_where_machine_code_is_from(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("installed_image", "compiled_image", "compile_image"):
        monkeypatch.setattr(warm_up, missing, lambda: None)
    asked = []

    def compiled() -> Image:
        asked.append("compile")
        return IMAGE

    monkeypatch.setattr(warm_up, "compile_image", compiled)
    assert warm_up.warm_up() == (
        "2 files of kernels are ready: they have been compiled, for znver3"
    )
    monkeypatch.setattr(warm_up, "compiled_image", lambda: IMAGE)
    assert "compiled before" in warm_up.warm_up()
    monkeypatch.setattr(warm_up, "installed_image", lambda: IMAGE)
    assert "came with the installation" in warm_up.warm_up()
    assert asked == ["compile"]


def test_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["warm-up"]) == OK
    assert "files of kernels are ready" in capsys.readouterr().out
