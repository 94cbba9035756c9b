"""Builds machine code of the embedded engine's kernels into wheels.

The description of the package is the README with links that work outside the sources:
`EVERMAT_REPOSITORY=https://…` says where they lead (see `docs/site/description.py`).

A wheel with machine code is for one platform and for processors from x86-64-v3 on; on
others, kernels are compiled when they are first used. `EVERMAT_PURE_WHEEL=1` makes a
wheel without machine code, for all platforms, and so does building where there is none
to be had. Editable installations never have any.
"""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PROJECT = Path(__file__).parent
SOURCES = PROJECT / "src"
TARGET = "evermat/engines/embedded/prebuilt"


class KernelHook(BuildHookInterface):  # type: ignore[misc,unused-ignore]
    """Compiles all kernels for the processors that most machines have."""

    PLUGIN_NAME = "custom"
    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the image to a wheel, and say for which platform it then is."""
        if version == "editable" or self.target_name != "wheel":
            return
        if os.environ.get("EVERMAT_PURE_WHEEL") or not _is_supported():
            return
        sys.path.insert(0, str(SOURCES))
        from evermat.engines.embedded.kernel_cache import (  # noqa: PLC0415
            BASELINE,
            compile_for_installation,
        )

        self._folder = tempfile.mkdtemp(prefix="evermat-wheel-")
        file = Path(self._folder) / f"{BASELINE}.image"
        compile_for_installation(file)
        build_data["force_include"][str(file)] = f"{TARGET}/{file.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(
        self,
        version: str,  # noqa: ARG002  the interface has it
        build_data: dict[str, Any],  # noqa: ARG002
        artifact_path: str,  # noqa: ARG002
    ) -> None:
        """Remove what the wheel has a copy of."""
        if self._folder:
            shutil.rmtree(self._folder)


class DescriptionHook(MetadataHookInterface):  # type: ignore[misc,unused-ignore]
    """Makes the README the description of the package."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description, and where the repository is, if that is known."""
        made = runpy.run_path(str(PROJECT / "docs" / "site" / "description.py"))
        repository = os.environ.get("EVERMAT_REPOSITORY")
        readme = (PROJECT / "README.md").read_text(encoding="utf-8")
        text = made["description"](readme, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if repository is not None:
            metadata["urls"] = {"Repository": repository}


def _is_supported() -> bool:
    return (
        sys.implementation.name == "cpython"
        and sys.platform == "linux"
        and platform.machine() == "x86_64"
    )


def _platform() -> str:
    """The platform of the wheel: machine code calls the C library for memory alone."""
    if platform.libc_ver()[0] == "glibc":
        return "manylinux_2_17_x86_64"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
