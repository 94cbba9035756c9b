"""Files of facts, read with what is known about the predicate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from evermat.io import data_file, read_table
from evermat.io.column_types import TYPES
from evermat.io.delimited import DIALECTS
from evermat.io.headers import ask_about_header
from evermat.rdf import read_rdf

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from evermat.io import DataFile
    from evermat.lang.catalogue import GivenNames, Predicate


def read_fact_file(
    path: Path,
    predicate: Predicate | None = None,
    *,
    header: bool | None = None,
    base: str | None = None,
    name: str = "",
    names: GivenNames | None = None,
) -> pa.Table:
    """The rows of a file: a table, or triples.

    Args:
        path: the file; its suffix says the format.
        predicate: gives columns their names and types, where it is known.
        header: whether a text file begins with a row of names. By default it does if
            that row holds the declared names, in any order and case.
        base: what relative IRIs in RDF files are relative to.
        name: of the predicate, where nothing else is known of it.
        names: knows what rules call the columns, where none are declared.

    Raises:
        HeaderNamesError: the first row holds some of the declared names.

    Warns:
        HeaderWarning: no names are declared, and the first row looks like names.
    """
    file = data_file(path)
    if file.is_rdf:
        return read_rdf(path, base=base)
    if predicate is not None and predicate.has_names:
        types = _types(predicate)
        return read_table(path, columns=predicate.columns, types=types, header=header)
    if predicate is None:
        table = read_table(path, header=header)
    else:
        # Other files have types of their own, and names that nobody declared.
        types = _types(predicate) if file.format in DIALECTS else None
        table = read_table(path, types=types, arity=predicate.arity, header=header)
    if header is None:
        known = name if predicate is None else predicate.name
        _ask_about_header(table, file, known or file.predicate, names)
    return table


def _ask_about_header(
    table: pa.Table, file: DataFile, name: str, names: GivenNames | None
) -> None:
    dialect = DIALECTS.get(file.format)
    if dialect is not None and dialect.header is None:
        in_rules = partial(names.in_rules, name) if names is not None else tuple
        ask_about_header(table, file.path, name, in_rules)


def _types(predicate: Predicate) -> list[str | None] | None:
    """The declared types, as far as texts can be turned into them."""
    return [each if each in TYPES else None for each in predicate.types] or None
