"""Mistakes to be planted into the running code; see docs/testing.md.

A mistake is tied to a function and to a piece of its syntax tree, not to its text. The
piece and what takes its place are written as lambdas, so they are code like any other:
whoever renames a method or an attribute renames it here, too, and a checker of types
sees the functions that are named. How the code is laid out does not matter.

    Mutant(
        "deletions are forgotten",
        Run.changes,
        lambda engine, deleted, added: engine.settle(deleted - added),
        lambda engine: engine.no_facts(),
    )

If no expression reads like the first lambda, its parameters match any expressions, the
same one wherever they occur; the names of functions that are called must agree. In the
second lambda parameters are what they matched. `...` among the arguments of a call
matches all arguments that are not named.

`assign(target, value)` is read as the statement `target = value` in both lambdas.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest


def assign(target: object, value: object) -> None:
    """An assignment, where a mutant has one; never called."""
    raise MutantError(f"only for mutants: {target} = {value}")


class MutantError(AssertionError):
    """The piece of code that a mutant changes is not there, or not only once."""


@dataclass(frozen=True)
class Mutant:
    """A mistake somebody could make.

    Attributes:
        function: the function that has it; may be a property or decorated.
        old: an expression of the function, as the body of a lambda.
        new: what takes its place; nothing does if the expression is a statement and
            this is left out.
        algorithm: the algorithm that goes wrong.
    """

    name: str
    function: object
    old: Callable[..., Any]
    new: Callable[..., Any] = lambda: None
    algorithm: str = ""


def plant(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the function run the mistake, wherever it was imported to.

    Raises:
        MutantError: the code has changed, and the mutant has to be adapted.
    """
    function = _plain(mutant.function)
    code = mutated(mutant.function, mutant.old, mutant.new)
    if code.co_freevars != function.__code__.co_freevars:
        raise MutantError(f"{function.__qualname__} is a closure over other names")
    monkeypatch.setattr(function, "__code__", code)


def mutated(
    written: object, old: Callable[..., Any], new: Callable[..., Any]
) -> CodeType:
    """The code of a function in which one expression is another."""
    function = _plain(written)
    name = f"{function.__module__}.{function.__qualname__}"
    tree = copy.deepcopy(_tree(inspect.getfile(function)))
    edit = replace(_definition(tree, function), _lambda(old), _lambda(new))
    if edit.found != 1:
        raise MutantError(
            f"{name} has {edit.found} times `{ast.unparse(edit.old.body)}`: "
            "adapt the mutant"
        )
    unknown = edit.unknown - _names_in(function)
    if unknown:
        raise MutantError(f"{name} knows no {', '.join(sorted(unknown))}")
    whole = compile(
        ast.fix_missing_locations(tree),
        inspect.getfile(function),
        "exec",
        dont_inherit=True,
    )
    return _code_of(whole, function)


def fails(game: Callable[[int], None], seed: int) -> bool:
    """Whether a game of random moves comes to a bad end, whichever it is."""
    try:
        game(seed)
    except Exception:  # noqa: BLE001  any failure is a finding
        return True
    return False


# ----------------------------------------------------------------- functions and trees


def _plain(function: object) -> FunctionType:
    """The function that was written, below properties and decorators."""
    if isinstance(function, property):
        function = function.fget
    elif isinstance(function, functools.cached_property):
        function = function.func
    function = inspect.unwrap(function)  # type: ignore[arg-type]
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        raise MutantError(f"{function!r} is not a function written in Python")
    return function


@functools.cache
def _tree(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  as `inspect` names it
        return ast.parse(file.read())


def _definition(tree: ast.Module, function: FunctionType) -> ast.FunctionDef:
    """Where a function is defined; its code knows the line of its first decorator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            lines = [node.lineno, *(each.lineno for each in node.decorator_list)]
            if min(lines) == function.__code__.co_firstlineno:
                return node
    raise MutantError(f"{function.__qualname__} is not where it was when it was loaded")


def _code_of(whole: CodeType, function: FunctionType) -> CodeType:
    wanted = function.__code__
    for code in _codes(whole):
        if (code.co_name, code.co_firstlineno) == (
            wanted.co_name,
            wanted.co_firstlineno,
        ):
            return code
    raise MutantError(f"{function.__qualname__} was not compiled")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names_in(function: FunctionType) -> frozenset[str]:
    """The names that mean something in a function."""
    code = function.__code__
    return frozenset(
        {
            *(name for each in _codes(code) for name in each.co_varnames),
            *code.co_cellvars,
            *code.co_freevars,
            *function.__globals__,
            *vars(builtins),
        }
    )


def _lambda(written: Callable[..., Any]) -> ast.Lambda:
    """The syntax tree of a lambda: the smallest one around all that it compiles to."""
    code = written.__code__
    # An instruction that is part of no expression has no width.
    spots = [
        (line, column)
        for line, _, column, end in code.co_positions()
        if line is not None and column is not None and end
    ]
    first, last = min(spots), max(spots)
    around = [
        node
        for node in ast.walk(_tree(code.co_filename))
        if isinstance(node, ast.Lambda)
        and (node.body.lineno, node.body.col_offset) <= first
        and last < (node.body.end_lineno or 0, node.body.end_col_offset or 0)
    ]
    assert around, "a lambda must have been read from a file"
    return max(around, key=lambda node: (node.lineno, node.col_offset))


# ------------------------------------------------------------------ patterns of code

_Bound = dict[str, "ast.expr | list[ast.expr | ast.keyword]"]


def replace(
    function: ast.FunctionDef, old: ast.Lambda, new: ast.Lambda
) -> _Replacement:
    """Put one expression in the place of another, by the very names if they are there.

    The function is changed unless nothing is found.
    """
    for names in (frozenset[str](), frozenset(each.arg for each in old.args.args)):
        edit = _Replacement(old, new, names)
        body = [edit.visit(copy.deepcopy(each)) for each in function.body]
        if edit.found:
            function.body = body
            break
    return edit


class _Replacement(ast.NodeTransformer):
    """Replaces the expressions that match a pattern.

    Attributes:
        names: those that match anything.
        found: how many expressions matched.
        unknown: names in the new expressions that were matched by nothing.
    """

    def __init__(self, old: ast.Lambda, new: ast.Lambda, names: frozenset[str]) -> None:
        self.old, self.new, self.names = old, new, names
        self.found = 0
        self.unknown: set[str] = set()

    def visit(self, node: ast.AST) -> Any:
        bound: _Bound = {}
        if isinstance(node, ast.expr) and self._matches(self.old.body, node, bound):
            return self._filled(bound)
        if isinstance(node, ast.Assign) and self._assigns_alike(node, bound):
            return _statement(self._filled(bound))
        visited = self.generic_visit(node)
        return _statement(visited.value) if isinstance(visited, ast.Expr) else visited

    def _filled(self, bound: _Bound) -> ast.expr:
        self.found += 1
        filling = _Filling(bound)
        filled: ast.expr = filling.visit(copy.deepcopy(self.new.body))
        self.unknown |= filling.unknown - {assign.__name__}
        return filled

    def _assigns_alike(self, node: ast.Assign, bound: _Bound) -> bool:
        """Whether an assignment is the one that the pattern names."""
        pattern = self.old.body
        return (
            _is_assignment(pattern)
            and len(node.targets) == 1
            and self._matches(pattern.args, [node.targets[0], node.value], bound)
        )

    def _matches(self, pattern: Any, node: Any, bound: _Bound) -> bool:
        if isinstance(pattern, ast.Name) and pattern.id in self.names:
            return _binds(pattern.id, node, bound)
        if isinstance(pattern, list):
            return (
                isinstance(node, list)
                and len(pattern) == len(node)
                and all(
                    self._matches(one, other, bound)
                    for one, other in zip(pattern, node, strict=True)
                )
            )
        if not isinstance(pattern, ast.AST):
            return bool(pattern == node)
        if type(pattern) is not type(node):
            return False
        if isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
            return self._calls_alike(pattern, node, bound)
        return self._fields_alike(pattern, node, bound)

    def _fields_alike(self, pattern: ast.AST, node: ast.AST, bound: _Bound) -> bool:
        return all(
            self._matches(getattr(pattern, field), getattr(node, field), bound)
            for field in pattern._fields
            if field not in {"ctx", "kind"}
        )

    def _called_alike(self, pattern: ast.Call, node: ast.Call, bound: _Bound) -> bool:
        """Whether the same is called; a function by the same name."""
        if not isinstance(pattern.func, ast.Name):
            return self._matches(pattern.func, node.func, bound)
        return isinstance(node.func, ast.Name) and node.func.id == pattern.func.id

    def _calls_alike(self, pattern: ast.Call, node: ast.Call, bound: _Bound) -> bool:
        """The same call; with `...`, arguments in front of it and some by name."""
        if not any(map(_is_rest, pattern.args)):
            alike = self._called_alike(pattern, node, bound)
            return alike and self._fields_alike(pattern, node, bound)
        first = pattern.args[:-1]
        assert _is_rest(pattern.args[-1]), "`...` comes after the other arguments"
        named = {each.arg: each.value for each in node.keywords}
        rest = [each for each in pattern.keywords if each.arg in named]
        wanted = {each.arg for each in pattern.keywords}
        bound["..."] = [
            *node.args[len(first) :],
            *(each for each in node.keywords if each.arg not in wanted),
        ]
        return (
            self._called_alike(pattern, node, bound)
            and len(rest) == len(pattern.keywords)
            and self._matches(first, node.args[: len(first)], bound)
            and all(self._matches(each.value, named[each.arg], bound) for each in rest)
        )


def _is_assignment(node: ast.expr) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == assign.__name__
    )


def _statement(value: ast.expr) -> ast.stmt:
    """An expression as a statement."""
    if not _is_assignment(value):
        return ast.Expr(value)
    target, assigned = value.args
    assert isinstance(target, ast.Name | ast.Attribute | ast.Subscript)
    target.ctx = ast.Store()
    return ast.Assign([target], assigned)


def _binds(name: str, node: Any, bound: _Bound) -> bool:
    """Whether a parameter can be an expression: the same one wherever it occurs."""
    if not isinstance(node, ast.expr):
        return False
    known = bound.setdefault(name, node)
    return isinstance(known, ast.AST) and ast.dump(known) == ast.dump(node)


class _Filling(ast.NodeTransformer):
    """Puts what parameters matched in their place."""

    def __init__(self, bound: _Bound) -> None:
        self.bound = bound
        self.unknown: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self.bound.get(node.id)
        if isinstance(found, ast.expr):
            return copy.deepcopy(found)
        if isinstance(node.ctx, ast.Load):
            self.unknown.add(node.id)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        rest = self.bound.get("...")
        self.generic_visit(node)
        if isinstance(rest, list) and any(map(_is_rest, node.args)):
            node.args = [each for each in node.args if not _is_rest(each)]
            for each in copy.deepcopy(rest):
                if isinstance(each, ast.keyword):
                    node.keywords.append(each)
                else:
                    node.args.append(each)
        return node


def _is_rest(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
