"""Columns of constants: the Arrow form in which facts travel between the parts.

A *term column* is an Arrow struct of `kind` and `text`, the two halves of a
`evermat.values.Constant`. Everything that can be a constant fits in one, mixed as it
comes. Data that arrives in ordinary Arrow types is turned into term columns by
`as_terms`, and back into the most ordinary type that holds it by `natural`.

Both work on whole columns. Python objects are made only where they are asked for
(`values`, `constants`) or where they are what was given (`table_of_rows`).
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
