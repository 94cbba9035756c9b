"""Compiles all kernels in advance, so that the first run does not wait for it.

Users run `evermat warm-up`, or `python -m evermat.engines.embedded.warm_up` where the
command is not installed.
"""

from __future__ import annotations

from evermat.engines.embedded.kernel_cache import (
    compile_image,
    compiled_image,
    installed_image,
)


def warm_up() -> str:
    """Compile kernels that have no machine code; return a message about its origin."""
    image, origin = installed_image(), "came with the installation"
    if image is None:
        image, origin = compiled_image(), "had been compiled before"
    if image is None:
        image, origin = compile_image(), "have been compiled"
    return (
        f"{len(image.objects)} files of kernels are ready: they {origin}, "
        f"for {image.made_with['processor']}"
    )


if __name__ == "__main__":
    print(warm_up())  # noqa: T201  what the command is for
