"""Incremental maintenance of datalog materialisations.

>>> import evermat
>>> kb = evermat.KnowledgeBase('''
...     reach(?x, ?y) :- edge(?x, ?y) .
...     reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
... ''')
>>> change = kb.insert("edge", [("a", "b"), ("b", "c")])
>>> sorted(kb.query("reach(?x, 'c')"))
[('a',), ('b',)]

The package imports its public names lazily, on first use, so importing it is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.api import KnowledgeBase
    from evermat.errors import EvermatError
    from evermat.explain.explanation import Explanation
    from evermat.functions.python import function
    from evermat.kb.transaction import Transaction
    from evermat.lang.parser import parse_program
    from evermat.lang.syntax import (
        Atom,
        Negation,
        Program,
        Rule,
        Variable,
        predicate,
        variables,
    )
    from evermat.maintenance.limits import Budget, BudgetExceededError, Step
    from evermat.maintenance.modules import register_module
    from evermat.results.change import Change
    from evermat.results.result import Result
    from evermat.values import IRI, BlankNode, LangString, TypedLiteral, Value

__version__ = "0.1.0"

__all__ = [
    "IRI",
    "Atom",
    "BlankNode",
    "Budget",
    "BudgetExceededError",
    "Change",
    "EvermatError",
    "Explanation",
    "KnowledgeBase",
    "LangString",
    "Negation",
    "Program",
    "Result",
    "Rule",
    "Step",
    "Transaction",
    "TypedLiteral",
    "Value",
    "Variable",
    "function",
    "parse_program",
    "predicate",
    "register_module",
    "variables",
]

_HOMES = {
    "evermat.api": ("KnowledgeBase",),
    "evermat.results.change": ("Change",),
    "evermat.errors": ("EvermatError",),
    "evermat.explain.explanation": ("Explanation",),
    "evermat.lang.parser": ("parse_program",),
    "evermat.lang.syntax": (
        *("Atom", "Negation", "Program", "Rule", "Variable"),
        *("predicate", "variables"),
    ),
    "evermat.maintenance.modules": ("register_module",),
    "evermat.functions.python": ("function",),
    "evermat.maintenance.limits": ("Budget", "BudgetExceededError", "Step"),
    "evermat.results.result": ("Result",),
    "evermat.kb.transaction": ("Transaction",),
    "evermat.values": ("IRI", "BlankNode", "LangString", "TypedLiteral", "Value"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # type checkers resolve all names, and should report others

    def __getattr__(name: str) -> object:
        """Load a public name from the module that defines it."""
        module = _HOME_OF.get(name)
        if module is None:
            message = f"module `evermat` has no attribute `{name}`"
            raise AttributeError(message)
        value = getattr(import_module(module), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
