"""Facts in and out: files of tables, and rows in Python objects."""

from evermat.io.column_types import (
    UnknownColumnError,
    UnknownTypeError,
    ValueFormatError,
)
from evermat.io.databases import DatabaseError, read_database, write_database
from evermat.io.files import (
    DamagedFileError,
    DataFile,
    FileMissingError,
    UnknownFormatError,
    data_file,
    predicate_of,
)
from evermat.io.frames import NotRowsError, UnevenColumnsError, rows_from
from evermat.io.ntriples import (
    LeftOutTriplesWarning,
    NotTriplesError,
    ntriples_blocks,
)
from evermat.io.places import MalformedFileError, NotUnicodeError
from evermat.io.tables import read_folder, read_table
from evermat.io.writing import NotDelimitableError, write_table

__all__ = [
    "DamagedFileError",
    "DataFile",
    "DatabaseError",
    "FileMissingError",
    "LeftOutTriplesWarning",
    "MalformedFileError",
    "NotDelimitableError",
    "NotRowsError",
    "NotTriplesError",
    "NotUnicodeError",
    "UnevenColumnsError",
    "UnknownColumnError",
    "UnknownFormatError",
    "UnknownTypeError",
    "ValueFormatError",
    "data_file",
    "ntriples_blocks",
    "predicate_of",
    "read_database",
    "read_folder",
    "read_table",
    "rows_from",
    "write_database",
    "write_table",
]
