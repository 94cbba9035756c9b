"""Columns of constants: the Arrow format in which modules exchange facts.

A *term column* is an Arrow struct of `kind` and `text`, the two fields of a
`evermat.values.Constant`. It can contain all constants, in any mixture. Data in
ordinary Arrow types is converted to term columns by `as_terms`, and back to the most
ordinary suitable type by `natural`.

Both work on whole columns. Python objects are only created where they are requested
(`values`, `constants`) or passed in (`table_of_rows`).
"""

from evermat.columns.incoming import (
    ArityMismatchError,
    MissingValueError,
    as_terms,
    beyond_calendar,
    column_names,
    column_of,
    empty_table,
    for_spark,
    joined_tables,
    require_values,
    rows_without,
    rows_without_columns,
    table_of_rows,
    term_table,
)
from evermat.columns.names import (
    ColumnNamesError,
    SwappedColumnsWarning,
    answer_places,
    declared_places,
    folded,
    order_of,
    quoted_names,
    say_nothing,
    warn,
)
from evermat.columns.reading import TermSyntaxError, read_terms
from evermat.columns.shapes import Shape, TableParts, as_parts, joined_shapes, shape_of
from evermat.columns.terms import (
    TERM,
    by_kind,
    constants,
    kinds_in,
    natural,
    ntriples_texts,
    plain_texts,
    shown_texts,
    term_texts,
    terms_of_kind,
    values,
)

__all__ = [
    "TERM",
    "ArityMismatchError",
    "ColumnNamesError",
    "MissingValueError",
    "Shape",
    "SwappedColumnsWarning",
    "TableParts",
    "TermSyntaxError",
    "answer_places",
    "as_parts",
    "as_terms",
    "beyond_calendar",
    "by_kind",
    "column_names",
    "column_of",
    "constants",
    "declared_places",
    "empty_table",
    "folded",
    "for_spark",
    "joined_shapes",
    "joined_tables",
    "kinds_in",
    "natural",
    "ntriples_texts",
    "order_of",
    "plain_texts",
    "quoted_names",
    "read_terms",
    "require_values",
    "rows_without",
    "rows_without_columns",
    "say_nothing",
    "shape_of",
    "shown_texts",
    "table_of_rows",
    "term_table",
    "term_texts",
    "terms_of_kind",
    "values",
    "warn",
]
