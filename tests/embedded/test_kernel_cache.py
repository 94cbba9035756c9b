"""Compiled code finds a place where installation and home cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evermat
from evermat.engines.embedded import kernel_cache
from evermat.engines.embedded.kernel_cache import KernelCacheWarning, choose_folder

ASK_NUMBA = """
import warnings
from pathlib import Path
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import evermat.engines.embedded as package
from numba.core.caching import FunctionCache
kernels = Path(package.__file__).with_name("kernels.py")
code, namespace = compile("def function(): pass", str(kernels), "exec"), {}
exec(code, namespace)
print(FunctionCache(namespace["function"]).cache_path)
print(*(each.message for each in told))
"""


def test_a_read_only_installation_without_a_home(tmp_path: Path) -> None:
    # Root may write anywhere, so there are files where folders should be.
    package = tmp_path / "installed" / "evermat"
    source = Path(evermat.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "engines" / "embedded" / "__pycache__").write_text("")
    (tmp_path / "tmp").mkdir()
    places = {
        "PYTHONPATH": str(package.parent),
        "HOME": "/dev/null",
        "XDG_CACHE_HOME": "/dev/null",
        "TMPDIR": str(tmp_path / "tmp"),
    }
    environment = {**os.environ, **places}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", ASK_NUMBA],
        capture_output=True,
        cwd=tmp_path,
        env=environment,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    folder, *told = done.stdout.splitlines()
    assert Path(folder).is_relative_to(tmp_path / "tmp")
    assert "EM914" in told[0]
    assert "NUMBA_CACHE_DIR" in told[1]


def test_what_others_can_write_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_BESIDE_KERNELS", Path("/dev/null/none"))
    monkeypatch.setattr(kernel_cache, "_folder_of_user", lambda: Path("/dev/null/no"))
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/none")
    with pytest.warns(KernelCacheWarning):
        choose_folder()
    own = Path(os.environ["NUMBA_CACHE_DIR"])
    choose_folder()  # it is there now, and not told again
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/none")
    with pytest.warns(KernelCacheWarning):
        choose_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == str(own)
    own.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/none")
    with pytest.warns(KernelCacheWarning):
        choose_folder()
    assert os.environ["NUMBA_CACHE_DIR"] != str(own)
