"""Functions in Python that rules can call like built-in ones.

A function is registered by its name, for all knowledge bases of the process. It must be
pure: the same result for the same arguments, and no side effects. Engines may call it
any number of times, Spark in its tasks. Annotations determine the types:

>>> @function
... def vat(price: int) -> int:
...     return price * 19 // 100
>>> vat(200)
38
"""

from __future__ import annotations

import inspect
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_type_hints, overload

from evermat.errors import EvermatError
from evermat.functions import (
    ANY,
    BLANK,
    BOOLEAN,
    INTEGER,
    NAME,
    NUMBER,
    STRING,
    Function,
    FunctionError,
    number_of,
    own_functions,
    register,
)
from evermat.values import IRI, BlankNode, Constant, Kind, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evermat.functions import Type

_DOUBLE: Type = frozenset({Kind.DOUBLE})
_EXACT: Type = frozenset({Kind.INTEGER, Kind.DECIMAL})

_TYPES: dict[object, tuple[Type, Type]] = {
    str: (STRING, STRING),
    int: (INTEGER, INTEGER),
    float: (NUMBER, _DOUBLE),
    Decimal: (_EXACT, _EXACT),
    bool: (BOOLEAN, BOOLEAN),
    IRI: (NAME, NAME),
    BlankNode: (BLANK, BLANK),
}
"""The argument and the result type of each annotation; others allow anything."""

_WORDS = frozenset({"not", "true", "false", "a", "count", "sum", "avg", "list", "any"})

_F = TypeVar("_F", bound="Callable[..., Any]")


class FunctionDefinitionError(EvermatError, ValueError):
    """A function in Python that rules cannot call."""

    code: ClassVar[str] = "EM406"


class MissingFunctionError(EvermatError, LookupError):
    """Rules call functions in Python that are not registered."""

    code: ClassVar[str] = "EM407"

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        listed = ", ".join(f"`{name}`" for name in self.names)
        super().__init__(
            f"rules call functions that are not registered: {listed}",
            reason="functions in Python are recorded by their names only",
            help="import the module that defines them with `@evermat.function` first",
        )


@overload
def function(definition: _F) -> _F: ...


@overload
def function(*, name: str | None = None, arrow: bool = False) -> Callable[[_F], _F]: ...


def function(
    definition: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    arrow: bool = False,
) -> Any:
    """Register a function for rules to call; a decorator.

    Args:
        definition: the function, with annotations.
        name: its name in rules; by default its own name.
        arrow: whether the function maps Arrow arrays, one for each argument, to an
            array.

    Raises:
        FunctionDefinitionError: rules cannot call the function.
    """
    if definition is None:
        return lambda found: function_of(found, name, arrow=arrow)
    return function_of(definition, name, arrow=arrow)


def function_of(definition: _F, name: str | None, *, arrow: bool) -> _F:
    """Register a function, and return it unchanged."""
    called = definition.__name__ if name is None else name
    if not called.isidentifier() or not called[0].islower() or called in _WORDS:
        raise FunctionDefinitionError(
            f"rules cannot call a function `{called}`",
            help="names begin with a lower-case letter, and are no words of the "
            "language: `@evermat.function(name=…)`",
        )
    takes, gives, most, least = _signature(definition, called, arrow=arrow)

    def evaluate(*arguments: Constant) -> Constant:
        values = [
            _converted(called, argument, takes[min(at, len(takes) - 1)])
            for at, argument in enumerate(arguments)
        ]
        return _result(called, _called(called, definition, values), gives)

    def evaluate_one(*arguments: Constant) -> Constant:
        return evaluate_columns([[argument] for argument in arguments])[0]

    def evaluate_columns(columns: Sequence[Sequence[Constant]]) -> list[Constant]:
        import pyarrow as pa  # noqa: PLC0415  only needed for functions of columns

        def compute(*values: list[object]) -> object:
            return definition(*map(pa.array, values)).to_pylist()

        values = [[each.value for each in column] for column in columns]
        found = _called(called, compute, values)
        if not isinstance(found, list) or len(found) != len(columns[0]):
            raise FunctionError(f"`{called}` does not give a value for each row")
        return [_result(called, each, gives) for each in found]

    kinds = tuple(_kinds(each)[0] for each in takes) or (ANY,)
    own = Function(
        called,
        max(least, 1) if arrow else least,
        most,
        kinds,
        _kinds(gives)[1],
        evaluate_one if arrow else evaluate,
        evaluate_columns if arrow else None,
    )
    if not register(own):
        raise FunctionDefinitionError(
            f"there is a built-in function `{called}`",
            help="give it another name: `@evermat.function(name=…)`",
        )
    return definition


def _signature(
    definition: Callable[..., Any], name: str, *, arrow: bool
) -> tuple[list[object], object, int | None, int]:
    """Return the annotations of arguments and result, and the arities allowed."""
    try:
        hints = {} if arrow else get_type_hints(definition)
        parameters = list(inspect.signature(definition).parameters.values())
    except (NameError, TypeError, ValueError) as problem:
        raise FunctionDefinitionError(
            f"the annotations of `{name}` cannot be read: {problem}"
        ) from None
    takes: list[object] = []
    least, most = 0, 0
    unbounded = False
    for each in parameters:
        if each.kind in {each.KEYWORD_ONLY, each.VAR_KEYWORD}:
            raise FunctionDefinitionError(
                f"`{name}` has arguments by keyword, which rules cannot give",
                help="have all arguments by position",
            )
        takes.append(hints.get(each.name, object))
        unbounded = unbounded or each.kind is each.VAR_POSITIONAL
        if each.kind is not each.VAR_POSITIONAL:
            most += 1
            least += each.default is each.empty
    return takes, hints.get("return", object), None if unbounded else most, least


def _kinds(annotation: object) -> tuple[Type, Type]:
    return _TYPES.get(annotation, (ANY, ANY))


def _converted(name: str, argument: Constant, annotation: object) -> object:
    takes, _ = _kinds(annotation)
    if argument.kind not in takes:
        wanted = getattr(annotation, "__name__", str(annotation))
        raise FunctionError(f"`{name}` needs `{wanted}`, but got {argument}")
    if annotation is float:
        return float(number_of(name, argument))
    if annotation is Decimal:
        return Decimal(argument.text)
    return argument.value


def _called(
    name: str, definition: Callable[..., object], values: Sequence[object]
) -> object:
    try:
        return definition(*values)
    except EvermatError:
        raise
    except Exception as problem:
        cause = f"{type(problem).__name__}: {problem}"
        raise FunctionError(f"`{name}` raised {cause}") from problem


def _result(name: str, value: object, annotation: object) -> Constant:
    _, gives = _kinds(annotation)
    try:
        found = constant(value)
    except (EvermatError, TypeError, ValueError):
        message = f"`{name}` gave {value!r}, which is no constant"
        raise FunctionError(message) from None
    if annotation is float and found.kind is Kind.INTEGER and isinstance(value, int):
        found = constant(float(value))
    if found.kind not in gives:
        wanted = getattr(annotation, "__name__", str(annotation))
        raise FunctionError(f"`{name}` promises `{wanted}`, but gave {found}")
    return found


def shipped(names: Iterable[str]) -> tuple[Function, ...]:
    """Return the functions in Python among some names, for another process."""
    own = own_functions()
    return tuple(own[name] for name in sorted(set(names)) if name in own)


def take_over(functions: Iterable[Function]) -> None:
    """Register functions in Python from another process."""
    for each in functions:
        register(each)
