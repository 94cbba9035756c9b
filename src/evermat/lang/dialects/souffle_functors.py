"""What functors and operators of Soufflé are called here."""

from __future__ import annotations

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
AGGREGATES = frozenset({"count", "sum", "mean", "min", "max"})
OPERATORS = {
    "^": "power",
    "band": "bit_and",
    "bor": "bit_or",
    "bxor": "bit_xor",
    "bshl": "shift_left",
    "bshr": "shift_right",
}
"""Operators that have the names of functions here."""
BIT_OPERATORS = frozenset(
    {*OPERATORS, "bnot", "bshru", "land", "lor", "lxor", "lnot"} - {"^"}
)
FUNCTORS = {
    "cat": "concat",
    "strlen": "length",
    "substr": "substr",
    "to_string": "str",
    "to_number": "int",
    "to_unsigned": "int",
    "to_float": "double",
    "itof": "double",
    "utof": "double",
    "ftoi": "int",
    "ftou": "int",
    "itou": "int",
    "utoi": "int",
    "min": "min",
    "max": "max",
    "range": "range",
}
UNKNOWN_FUNCTORS = {
    "ord": "the functor `ord`",
    "autoinc": "the functor `autoinc`",
    "as": "the type cast `as`",
}
ARITY = {"substr": 3, "cat": None, "min": None, "max": None, "range": None}
"""How many arguments functors take, other than one; None for any number."""
