"""Built-in functions: their names, types and meaning on single constants.

Engines may compute whole columns at once, but the results must equal those of this
module.

Numbers keep their kind: integers are exact and of any size, an integer with a decimal
gives a decimal, and anything with a double gives a double. `/` between integers cuts
towards zero and `%` has the sign of the dividend, so `(a / b) * b + a % b` is `a`.

`=` and `!=` compare the kind and the text of two constants, so `1 = 1.0` is false. The
order comparisons compare numbers of all kinds by value; other constants are comparable
only with constants of their own kind, so both `1 < "a"` and `"a" < 1` are false.

Literals of type `xsd:float` are stored as written, because they are not doubles; in
arithmetic they are the double of the same value.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import operator
import re
import sys
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.errors import EvermatError
from evermat.values import (
    NUMERIC_KINDS,
    XSD,
    Constant,
    Kind,
    are_different,
    boolean_constant,
    decimal_constant,
    double_constant,
    integer_constant,
    is_literal,
    is_outside,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Evaluate = Callable[..., Constant]
    EvaluateColumns = Callable[[Sequence[Sequence[Constant]]], list[Constant]]

Type = frozenset[Kind]
"""A type is the set of kinds that a constant of the type may have."""

ANY: Type = frozenset(Kind)
NUMBER: Type = NUMERIC_KINDS
TEXT: Type = frozenset({Kind.STRING, Kind.LANGUAGE, Kind.IRI})
STRING: Type = frozenset({Kind.STRING})
INTEGER: Type = frozenset({Kind.INTEGER})
DOUBLE: Type = frozenset({Kind.DOUBLE})
BOOLEAN: Type = frozenset({Kind.BOOLEAN})
BLANK: Type = frozenset({Kind.BLANK})
NAME: Type = frozenset({Kind.IRI})
CONVERTIBLE: Type = NUMBER | STRING

_EXACT = Context(prec=100_000)
"""Sums and products of decimals are never rounded."""

_QUOTIENT = Context(prec=34)
"""Quotients of decimals need a limit: the 34 digits of IEEE decimal128."""


_BITS_OF_DIGIT = 4
"""More than a decimal digit has."""


class FunctionError(EvermatError, ArithmeticError):
    """A function has no value for its arguments."""

    code = "EM405"


@dataclass(frozen=True, slots=True)
class Function:
    """A function or operator of the language.

    Attributes:
        maximum_arity: None for any number of arguments.
        argument_types: by position; the last one applies to all further arguments.
        evaluate: computes the value, or raises `FunctionError`.
        evaluate_columns: computes the values for many rows, with a column for each
            argument, if the function works on columns.
    """

    name: str
    minimum_arity: int
    maximum_arity: int | None
    argument_types: tuple[Type, ...]
    result_type: Type
    evaluate: Evaluate
    evaluate_columns: (
        Callable[[Sequence[Sequence[Constant]]], list[Constant]] | None
    ) = None

    @property
    def is_condition(self) -> bool:
        """Whether a call can be a body element by itself."""
        return self.result_type == BOOLEAN

    def argument_type(self, position: int) -> Type:
        """Return the type of the argument at a position, from 0."""
        return self.argument_types[min(position, len(self.argument_types) - 1)]

    def takes(self, count: int) -> bool:
        """Return whether the function can be called with `count` arguments."""
        most = self.maximum_arity
        return count >= self.minimum_arity and (most is None or count <= most)


def evaluate(name: str, *arguments: Constant) -> Constant:
    """Return the value of a function by name.

    >>> evaluate("+", integer_constant(1), integer_constant(2)).text
    '3'

    Raises:
        FunctionError: if the function has no value for the arguments.
    """
    return FUNCTIONS[name].evaluate(*arguments)


# ------------------------------------------------------------------- arithmetic


def _number(name: str, argument: Constant) -> int | Decimal | float:
    match argument.kind:
        case Kind.INTEGER:
            return _parsed_integer(name, argument)
        case Kind.DECIMAL:
            return Decimal(argument.text)
        case Kind.DOUBLE:
            return float(argument.text)
        case _:
            value = _single_precision(argument)
            if value is None:
                raise _wrong_type(name, argument, "a number")
            return value


def number_of(name: str, argument: Constant) -> int | Decimal | float:
    """Return the number that a constant denotes, for a function or an aggregate."""
    return _number(name, argument)


_FLOAT = f"{XSD}float\0"


def _single_precision(argument: Constant) -> float | None:
    """Return the value of a literal of type `xsd:float`; None for other constants."""
    if argument.kind is not Kind.TYPED or not argument.text.startswith(_FLOAT):
        return None
    known = literal(argument.text.removeprefix(_FLOAT), XSD + "double")
    return (
        ctypes.c_float(float(known.text)).value if known.kind is Kind.DOUBLE else None
    )


def _is_number(argument: Constant) -> bool:
    return argument.kind in NUMERIC_KINDS or _single_precision(argument) is not None


def _parsed_integer(name: str, argument: Constant) -> int:
    try:
        return int(argument.text)
    except ValueError:
        raise _too_long(name) from None


def _integer_result(name: str, value: int) -> Constant:
    try:
        return Constant(Kind.INTEGER, str(value))
    except ValueError:
        raise _too_long(name) from None


def _too_long(name: str) -> FunctionError:
    """Return the error for a long number: Python refuses the quadratic conversion."""
    digits = sys.get_int_max_str_digits()
    return FunctionError(f"`{name}`: an integer has more than {digits} digits")


def _wrong_type(name: str, argument: Constant, wanted: str) -> FunctionError:
    return FunctionError(f"`{name}` needs {wanted}, but got {argument}")


def _float(name: str, value: Decimal | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise FunctionError(
            f"`{name}`: the number {value} is too big for a double"
        ) from None


def _arithmetic(
    name: str,
    integers: Callable[[int, int], int],
    decimals: Callable[[Decimal, Decimal], Decimal],
    doubles: Callable[[float, float], float],
) -> Evaluate:
    def evaluate(left: Constant, right: Constant) -> Constant:
        a, b = _number(name, left), _number(name, right)
        if isinstance(a, int) and isinstance(b, int):
            return _integer_result(name, integers(a, b))
        if isinstance(a, float) or isinstance(b, float):
            return double_constant(doubles(_float(name, a), _float(name, b)))
        return decimal_constant(decimals(Decimal(a), Decimal(b)))

    return evaluate


def _divide_integers(a: int, b: int) -> int:
    _refuse_zero(a, b)
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder_integers(a: int, b: int) -> int:
    return a - b * _divide_integers(a, b)


def _divide_decimals(a: Decimal, b: Decimal) -> Decimal:
    _refuse_zero(a, b)
    return _QUOTIENT.divide(a, b)


def quotient(a: Decimal, b: Decimal) -> Decimal:
    """Return a quotient of decimals, rounded to 34 digits."""
    return _divide_decimals(a, b)


def _remainder_decimals(a: Decimal, b: Decimal) -> Decimal:
    _refuse_zero(a, b)
    return _EXACT.remainder(a, b)


def _divide_doubles(a: float, b: float) -> float:
    _refuse_zero(a, b)
    return a / b


def _remainder_doubles(a: float, b: float) -> float:
    _refuse_zero(a, b)
    # The C function raises an error where IEEE 754 defines the remainder as NaN.
    return math.nan if math.isinf(a) else math.fmod(a, b)


def _refuse_zero(a: object, b: object) -> None:
    if b == 0:
        raise FunctionError(f"division of {a} by zero")


def _of_integers(name: str, compute: Callable[[int, int], int]) -> Evaluate:
    def evaluate(left: Constant, right: Constant) -> Constant:
        for argument in (left, right):
            if argument.kind is not Kind.INTEGER:
                raise _wrong_type(name, argument, "an integer")
        a, b = _parsed_integer(name, left), _parsed_integer(name, right)
        return _integer_result(name, compute(a, b))

    return evaluate


def _power(a: int, b: int) -> int:
    _refuse_negative("power", b)
    if abs(a) > 1:
        _require_room("power", (a.bit_length() - 1) * b)
    result: int = a**b
    return result


def _shift_left(a: int, b: int) -> int:
    _refuse_negative("shift_left", b)
    if a:
        _require_room("shift_left", b)
    return a << b if a else 0


def _shift_right(a: int, b: int) -> int:
    _refuse_negative("shift_right", b)
    return a >> min(b, a.bit_length())


def _refuse_negative(name: str, value: int) -> None:
    if value < 0:
        raise FunctionError(f"`{name}` needs a number that is not negative")


def _require_room(name: str, bits: int) -> None:
    """Refuse a number of so many bits, which would take long to compute."""
    if bits > _BITS_OF_DIGIT * sys.get_int_max_str_digits():
        raise _too_long(name)


_add = _arithmetic("+", operator.add, _EXACT.add, operator.add)
_subtract = _arithmetic("-", operator.sub, _EXACT.subtract, operator.sub)


def _minus(left: Constant, right: Constant | None = None) -> Constant:
    if right is not None:
        return _subtract(left, right)
    value = _number("-", left)
    if isinstance(value, int):
        return _integer_result("-", -value)
    if isinstance(value, float):
        return double_constant(-value)
    return decimal_constant(_EXACT.minus(value))


def _absolute(argument: Constant) -> Constant:
    value = _number("abs", argument)
    if isinstance(value, int):
        return integer_constant(abs(value))
    if isinstance(value, float):
        return double_constant(abs(value))
    return decimal_constant(_EXACT.abs(value))


# ------------------------------------------------------------------ comparisons


def compare(left: Constant, right: Constant) -> int | None:
    """Return -1, 0 or 1 if `left` is less, equal or greater; None if unordered.

    Numbers compare by value. Strings, IRIs and strings of the same language compare by
    code points, literals of the same datatype by their lexical forms, and false is
    less than true. All other pairs are unordered.
    """
    if _is_number(left) and _is_number(right):
        return _compare_numbers(left, right)
    if left.kind is not right.kind or left.kind is Kind.BLANK:
        return None
    if left.kind in {Kind.TYPED, Kind.LANGUAGE}:
        tag, _, mine = left.text.partition("\0")
        other_tag, _, other = right.text.partition("\0")
        return (mine > other) - (mine < other) if tag == other_tag else None
    return (left.text > right.text) - (left.text < right.text)


def _compare_numbers(left: Constant, right: Constant) -> int | None:
    a, b = _number("<", left), _number("<", right)
    if a != a or b != b:  # noqa: PLR0124  only NaN differs from itself
        return None
    return (a > b) - (a < b)


def _comparison(accept: frozenset[int]) -> Evaluate:
    def evaluate(left: Constant, right: Constant) -> Constant:
        return boolean_constant(value=compare(left, right) in accept)

    return evaluate


def _extreme(name: str, sign: int) -> Evaluate:
    def evaluate(first: Constant, *others: Constant) -> Constant:
        best = first
        for other in others:
            order = compare(other, best)
            if order is None:
                raise FunctionError(f"`{name}`: {best} and {other} are in no order")
            if order == sign:
                best = other
        return best

    return evaluate


# ------------------------------------------------------------------------- text


def text_of(argument: Constant) -> str:
    """Return the result of `str`: a constant without tag, datatype or brackets."""
    if argument.kind in {Kind.TYPED, Kind.LANGUAGE}:
        return argument.text.partition("\0")[2]
    if argument.kind is Kind.BLANK:
        return f"_:{argument.text}"
    return argument.text


def _text(name: str, argument: Constant) -> str:
    if argument.kind not in TEXT:
        raise _wrong_type(name, argument, "a text")
    return text_of(argument)


def _string(text: str) -> Constant:
    return Constant(Kind.STRING, text)


def _integer(name: str, argument: Constant) -> int:
    if argument.kind is not Kind.INTEGER:
        raise _wrong_type(name, argument, "an integer")
    return _parsed_integer(name, argument)


def _substring(
    text: Constant, start: Constant, length: Constant | None = None
) -> Constant:
    whole = _text("substr", text)
    first = _integer("substr", start) - 1
    last = len(whole) if length is None else first + _integer("substr", length)
    return _string(whole[max(first, 0) : max(last, 0)])


def _text_to_text(name: str, convert: Callable[[str], str]) -> Evaluate:
    return lambda argument: _string(convert(_text(name, argument)))


def _text_test(name: str, test: Callable[[str, str], bool]) -> Evaluate:
    return lambda text, part: boolean_constant(
        value=test(_text(name, text), _text(name, part))
    )


_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE}


@lru_cache(maxsize=256)
def regular_expression(pattern: str, flags: str = "") -> re.Pattern[str]:
    """Return the compiled pattern; raises `FunctionError` if it is not valid."""
    options = re.RegexFlag(0)
    for flag in flags:
        if flag not in _FLAGS:
            raise FunctionError(
                f"`regex`: unknown flag `{flag}`", help="the flags are i, s, m and x"
            )
        options |= _FLAGS[flag]
    try:
        return re.compile(pattern, options)
    except re.error as error:
        raise FunctionError(
            f"`regex`: `{pattern}` is not a regular expression: {error}"
        ) from error


def _regex(
    text: Constant, pattern: Constant, flags: Constant | None = None
) -> Constant:
    options = "" if flags is None else _text("regex", flags)
    compiled = regular_expression(_text("regex", pattern), options)
    return boolean_constant(value=compiled.search(_text("regex", text)) is not None)


# ------------------------------------------------------------------ conversions


def _digits(argument: Constant) -> str:
    """Return the text of a number; `1_0` and digits of other scripts are refused."""
    if "_" in argument.text or not argument.text.isascii():
        raise ValueError(argument.text)
    return argument.text


def _to_integer(argument: Constant) -> Constant:
    try:
        if argument.kind is Kind.STRING:
            return integer_constant(int(_digits(argument)))
        return _integer_result("int", int(_number("int", argument)))
    except (ValueError, OverflowError):
        raise FunctionError(f"`int`: {argument} is not an integer") from None


def _to_double(argument: Constant) -> Constant:
    if argument.kind is not Kind.STRING:
        return double_constant(_float("double", _number("double", argument)))
    try:
        return double_constant(float(_digits(argument)))
    except ValueError:
        raise FunctionError(f"`double`: {argument} is not a number") from None


def _skolem(name: Constant, *arguments: Constant) -> Constant:
    digest = hashlib.blake2b(digest_size=16)
    for part in (name, *arguments):
        data = part.text.encode("utf-8", "surrogatepass")
        # The length prefix distinguishes ("a", "bc") from ("ab", "c").
        digest.update(f"{int(part.kind)}:{len(data)}:".encode())
        digest.update(data)
    return Constant(Kind.BLANK, f"sk{digest.hexdigest()}")


# ------------------------------------------------------------- kinds and datatypes


_DATATYPES = {
    Kind.STRING: XSD + "string",
    Kind.INTEGER: XSD + "integer",
    Kind.DECIMAL: XSD + "decimal",
    Kind.DOUBLE: XSD + "double",
    Kind.BOOLEAN: XSD + "boolean",
    # These have no datatype, but an error would stop every rule that matches one.
    Kind.IRI: "http://www.w3.org/2000/01/rdf-schema#Resource",
    Kind.BLANK: "http://www.w3.org/2000/01/rdf-schema#Resource",
}


_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def _datatype(argument: Constant) -> Constant:
    tag = argument.text.partition("\0")[0]
    if argument.kind is Kind.LANGUAGE:
        name = _RDF + ("dirLangString" if "--" in tag else "langString")
    else:
        name = _DATATYPES.get(argument.kind, tag)
    return Constant(Kind.IRI, name)


def _language(argument: Constant) -> Constant:
    if argument.kind is not Kind.LANGUAGE:
        return _string("")
    tag = argument.text.partition("\0")[0]
    return _string(tag.partition("--")[0])


def _is_literal(value: Constant) -> Constant:
    return boolean_constant(value=is_literal(value))


def _literal_outside(value: Constant, datatype: Constant) -> Constant:
    return boolean_constant(value=is_outside(value, datatype.text))


def _values_differ(left: Constant, right: Constant) -> Constant:
    return boolean_constant(value=are_different(left, right))


# ------------------------------------------------------------------- the registry


def _all_functions() -> list[Function]:
    multiply = _arithmetic("*", operator.mul, _EXACT.multiply, operator.mul)
    divide = _arithmetic("/", _divide_integers, _divide_decimals, _divide_doubles)
    remainder = _arithmetic(
        "%", _remainder_integers, _remainder_decimals, _remainder_doubles
    )
    return [
        Function("+", 2, 2, (NUMBER,), NUMBER, _add),
        Function("-", 1, 2, (NUMBER,), NUMBER, _minus),
        Function("*", 2, 2, (NUMBER,), NUMBER, multiply),
        Function("/", 2, 2, (NUMBER,), NUMBER, divide),
        Function("%", 2, 2, (NUMBER,), NUMBER, remainder),
        Function("abs", 1, 1, (NUMBER,), NUMBER, _absolute),
        *(
            Function(name, 2, 2, (INTEGER,), INTEGER, _of_integers(name, compute))
            for name, compute in (
                ("power", _power),
                ("bit_and", operator.and_),
                ("bit_or", operator.or_),
                ("bit_xor", operator.xor),
                ("shift_left", _shift_left),
                ("shift_right", _shift_right),
            )
        ),
        Function("=", 2, 2, (ANY,), BOOLEAN, _same),
        Function("!=", 2, 2, (ANY,), BOOLEAN, _different),
        Function("<", 2, 2, (ANY,), BOOLEAN, _comparison(frozenset({-1}))),
        Function("<=", 2, 2, (ANY,), BOOLEAN, _comparison(frozenset({-1, 0}))),
        Function(">", 2, 2, (ANY,), BOOLEAN, _comparison(frozenset({1}))),
        Function(">=", 2, 2, (ANY,), BOOLEAN, _comparison(frozenset({0, 1}))),
        Function("min", 2, None, (ANY,), ANY, _extreme("min", -1)),
        Function("max", 2, None, (ANY,), ANY, _extreme("max", 1)),
        Function("str", 1, 1, (ANY,), STRING, lambda a: _string(text_of(a))),
        Function("concat", 1, None, (ANY,), STRING, _concatenate),
        Function("length", 1, 1, (TEXT,), INTEGER, _length),
        Function("substr", 2, 3, (TEXT, INTEGER), STRING, _substring),
        Function("upper", 1, 1, (TEXT,), STRING, _text_to_text("upper", str.upper)),
        Function("lower", 1, 1, (TEXT,), STRING, _text_to_text("lower", str.lower)),
        _test("contains", operator.contains),
        _test("starts_with", str.startswith),
        _test("ends_with", str.endswith),
        Function("regex", 2, 3, (TEXT,), BOOLEAN, _regex),
        Function("int", 1, 1, (CONVERTIBLE,), INTEGER, _to_integer),
        Function("double", 1, 1, (CONVERTIBLE,), DOUBLE, _to_double),
        Function("datatype", 1, 1, (ANY,), NAME, _datatype),
        Function("language", 1, 1, (ANY,), STRING, _language),
        Function("skolem", 1, None, (ANY,), BLANK, _skolem),
        Function("is_literal", 1, 1, (ANY,), BOOLEAN, _is_literal),
        Function("literal_outside", 2, 2, (ANY, NAME), BOOLEAN, _literal_outside),
        Function("values_differ", 2, 2, (ANY,), BOOLEAN, _values_differ),
    ]


def _test(name: str, test: Callable[[str, str], bool]) -> Function:
    return Function(name, 2, 2, (TEXT,), BOOLEAN, _text_test(name, test))


def _same(left: Constant, right: Constant) -> Constant:
    return boolean_constant(value=left == right)


def _different(left: Constant, right: Constant) -> Constant:
    return boolean_constant(value=left != right)


def _concatenate(*arguments: Constant) -> Constant:
    return _string("".join(map(text_of, arguments)))


def _length(argument: Constant) -> Constant:
    return integer_constant(len(_text("length", argument)))


_BUILT_IN = {function.name: function for function in _all_functions()}
_ALL = dict(_BUILT_IN)

FUNCTIONS: Mapping[str, Function] = MappingProxyType(_ALL)
"""Every function of the language, by name; operators are named by their symbol."""


def register(function: Function) -> bool:
    """Add or replace a user's function; return False for the name of a built-in one."""
    if function.name in _BUILT_IN:
        return False
    _ALL[function.name] = function
    return True


def own_functions() -> dict[str, Function]:
    """Return the functions registered by users."""
    return {name: each for name, each in _ALL.items() if name not in _BUILT_IN}


ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
