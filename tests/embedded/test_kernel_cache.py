"""Machine code is found by content, and made where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evermat.engines.embedded import compilation, kernel_cache, kernel_sources
from evermat.engines.embedded.compilation import (
    CompilationError,
    compile_units,
    one_at_a_time,
)
from evermat.engines.embedded.kernel_cache import KernelCacheWarning, writable_folder
from evermat.engines.embedded.kernel_sources import (
    Image,
    key_of_unit,
    read_image,
    units,
    write_image,
)

NOWHERE = Path("/dev/null/none")
PACKAGE = kernel_sources.PACKAGE
README_EXAMPLE = """
import sys, evermat
kb = evermat.KnowledgeBase('''
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
''')
kb.load({"edge": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")]})
print(kb.delete("edge", [("b", "c")]))
print("numba" in sys.modules)
"""


@pytest.fixture
def image() -> Image:
    return Image("key", ["avx2"], {"processor": "p"}, {"one": b"12\n3", "two": b""})


def test_an_image_is_read_as_it_was_written(tmp_path: Path, image: Image) -> None:
    write_image(image, tmp_path / "image")
    assert read_image(tmp_path / "image", "key") == image
    assert read_image(tmp_path / "image", "another key") is None
    assert [each.name for each in tmp_path.iterdir()] == ["image"]


def test_damaged_images_are_not_loaded(tmp_path: Path, image: Image) -> None:
    file = tmp_path / "image"
    write_image(image, file)
    content = file.read_bytes()
    for at in range(len(content)):
        file.write_bytes(content[:at])
        assert read_image(file, "key") is None
        file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert read_image(file, "key") is None
    assert read_image(tmp_path / "none", "key") is None


def test_keys_follow_from_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "embedded"
    shutil.copytree(kernel_sources.HERE, copy)
    monkeypatch.setattr(kernel_sources, "HERE", copy)

    def keys() -> dict[str, str]:
        for each in (units, kernel_sources.key_of_sources, kernel_sources.needed_by):
            each.cache_clear()
        found = {unit.rpartition(".")[2]: key_of_unit(unit) for unit in units()}
        return {**found, "all": kernel_sources.key_of_sources()}

    def changed_by(name: str) -> set[str]:
        before = keys()
        with (copy / name).open("a") as file:
            file.write("# changed\n")
        after = keys()
        return {unit for unit in after if after[unit] != before[unit]}

    try:
        before = keys()
        os.utime(copy / "kernels/wide.py", (1, 1))
        assert keys() == before
        assert changed_by("kernels/wide.py") == {"wide", "all"}
        assert {"interpreter", "wide", "all"} <= changed_by("kernels/keys.py")
        assert "wide" not in changed_by("kernels/lookups.py")
        assert "interpreter" in changed_by("kernels/layout.py")
        assert changed_by("compiler.py") == set(before)
        assert changed_by("engine.py") == set()
        # Constants that kernels are compiled with, from a module without kernels.
        assert "rewriting" in changed_by("relation.py")
    finally:
        monkeypatch.undo()
        keys()


def test_processors_without_the_features_do_not_run_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: Image
) -> None:
    monkeypatch.setattr(kernel_cache, "INSTALLED", tmp_path)
    monkeypatch.setattr(kernel_cache, "key_of_sources", lambda: "key")
    write_image(image, tmp_path / "any.image")
    monkeypatch.setattr(kernel_cache, "_processor", lambda: ("p", "+avx2,-avx512f"))
    assert kernel_cache.installed_image() == image
    monkeypatch.setattr(kernel_cache, "_processor", lambda: ("p", "-avx2,+sse4.2"))
    assert kernel_cache.installed_image() is None


def without_folders(monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    """Root may write anywhere, so there are no folders at all."""
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(kernel_cache, "_BESIDE_KERNELS", NOWHERE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(NOWHERE))
    monkeypatch.setenv(kernel_cache.SETTING, str(NOWHERE))


def test_a_folder_is_found_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_folders(monkeypatch, tmp_path)
    with pytest.warns(KernelCacheWarning, match=kernel_cache.SETTING) as said:
        folder = writable_folder()
    assert len(said) == 1
    assert folder.is_relative_to(tmp_path)
    monkeypatch.setenv(kernel_cache.SETTING, str(tmp_path / "mine"))
    assert writable_folder() == tmp_path / "mine"  # and warns of nothing


def test_what_others_can_write_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_folders(monkeypatch, tmp_path)
    with pytest.warns(KernelCacheWarning):
        shared = writable_folder()
    with pytest.warns(KernelCacheWarning):
        assert writable_folder() == shared
    assert shared in kernel_cache.folders()
    shared.chmod(0o777)
    assert shared not in kernel_cache.folders()
    with pytest.warns(KernelCacheWarning):
        assert writable_folder() != shared


def test_a_unit_is_compiled_once_and_again_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    unit = f"{PACKAGE}.kernels.rows"
    monkeypatch.setattr(compilation, "units", lambda: {unit: units()[unit]})
    first = compile_units(tmp_path, "x86-64", "")
    said = capfd.readouterr().err
    assert "compiling 1 files of kernels" in said
    assert str(tmp_path) in said
    assert compile_units(tmp_path, "x86-64", "") == first
    assert capfd.readouterr().err == ""
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-10])
    assert compile_units(tmp_path, "x86-64", "").keys() == first.keys()
    assert "compiled in" in capfd.readouterr().err


def test_a_compiler_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no compiler here >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(failing))
    with pytest.raises(CompilationError, match="no compiler here"):
        compile_units(tmp_path, "x86-64", "")


def test_one_process_compiles_at_a_time(tmp_path: Path) -> None:
    order = []
    with one_at_a_time(tmp_path):

        def wait() -> None:
            with one_at_a_time(tmp_path):
                order.append("second")

        other = threading.Thread(target=wait)
        other.start()
        other.join(0.3)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_the_compiler_is_not_loaded_to_run() -> None:
    done = subprocess.run(
        [sys.executable, "-c", README_EXAMPLE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("<Change edge -1, reach -2>\nFalse\n", "")
