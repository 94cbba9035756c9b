"""The folder of a state, wherever it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs
from deltalake.fs import DeltaStorageHandler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer


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
    return pyarrow.fs.PyFileSystem(_Store(uri, dict(options)))


class _Store(DeltaStorageHandler):
    def open_output_stream(
        self, path: str, metadata: dict[str, str] | None = None
    ) -> pa.PythonFile:
        return pa.PythonFile(_Upload(self._handler.open_output_stream(path, metadata)))


class _Upload:
    """A stream of `deltalake`, which takes bytes where Arrow writes buffers."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401  it has no public type
        self._stream = stream

    def write(self, data: Buffer) -> int:
        written: int = self._stream.write(bytes(data))
        return written

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the stream has
        return getattr(self._stream, name)
