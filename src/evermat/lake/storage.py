"""The folder of a state, wherever it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow.fs
from deltalake.fs import DeltaStorageHandler

if TYPE_CHECKING:
    from collections.abc import Mapping


def uri_of(place: str) -> str:
    """The URI of a place, which may be a path."""
    return place if "://" in place else Path(place).absolute().as_uri()


def open_folder(uri: str, options: Mapping[str, str]) -> pyarrow.fs.FileSystem:
    """The folder of a table, with the access that the options give."""
    address = urlsplit(uri)
    if address.scheme == "file":
        # On a disk, `deltalake` writes to files whose names `vacuum` does not list,
        # where they stay if the writer is killed.
        folder = unquote(address.path)
        return pyarrow.fs.SubTreeFileSystem(folder, pyarrow.fs.LocalFileSystem())
    return pyarrow.fs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
