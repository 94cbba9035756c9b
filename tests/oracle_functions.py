"""What the functions of the language mean, written once more for the oracle.

`evermat.functions` is what engines fall back on, so it cannot be its own judge. Here
integers are Python's, decimals are fractions with a text, and every order is an order
of exact fractions; nothing but constants is shared with the package.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
import struct
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from evermat.values import IRI, XSD, Constant, Kind, constant

if TYPE_CHECKING:
    from collections.abc import Callable

QUOTIENT_DIGITS = 34
MOST_DIGITS = 4300
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_TEXTS = {Kind.STRING, Kind.LANGUAGE, Kind.IRI}

Number = int | Fraction | float
"""Integers are exact, decimals are fractions, doubles are doubles."""


class NoValueError(Exception):
    """A function has no value for its arguments."""


def evaluate(name: str, *arguments: Constant) -> Constant:
    """The value of a function by name.

    Raises:
        NoValueError: if there is none.
    """
    return _DEFINITIONS[name](*arguments)


# ---------------------------------------------------------------------- numbers


def number_of(argument: Constant) -> Number | None:
    """The number that a constant is; None if it is none."""
    match argument.kind:
        case Kind.INTEGER:
            return _integer_of(argument.text)
        case Kind.DECIMAL:
            return Fraction(argument.text)
        case Kind.DOUBLE:
            return float(argument.text)
        case Kind.TYPED:
            datatype, _, lexical = argument.text.partition("\0")
            return _single(lexical) if datatype == XSD + "float" else None
        case _:
            return None


def _integer_of(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise NoValueError(text[:20])
    return int(text)


_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}


def _single(lexical: str) -> float | None:
    """A literal of single precision as a double of the same value."""
    body = lexical.strip(" \t\r\n")
    if body in _SPECIAL:
        return _SPECIAL[body]
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", body, re.ASCII):
        return None
    value = float(body)
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(rounded)


def _needed(argument: Constant) -> Number:
    number = number_of(argument)
    if number is None:
        raise NoValueError(argument)
    return number


def _as_double(number: Number) -> float:
    if isinstance(number, Fraction) and abs(number) >= 2**1024:
        return math.copysign(math.inf, number)
    try:
        return float(number)
    except OverflowError:
        raise NoValueError(number) from None


def _integer(value: int) -> Constant:
    if abs(value) >= 10**MOST_DIGITS:
        raise NoValueError
    return Constant(Kind.INTEGER, str(value))


def _decimal(value: Fraction) -> Constant:
    """A fraction whose denominator is a product of twos and fives, in digits."""
    places = 0
    while (10**places) % value.denominator:
        places += 1
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    digits = digits.rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
    sign = "-" if value < 0 else ""
    return Constant(Kind.DECIMAL, f"{sign}{whole}.{fraction.rstrip('0') or '0'}")


def _double(value: float) -> Constant:
    return Constant(Kind.DOUBLE, repr(value))


def _boolean(*, value: bool) -> Constant:
    return Constant(Kind.BOOLEAN, "true" if value else "false")


def _string(text: str) -> Constant:
    return Constant(Kind.STRING, text)


# -------------------------------------------------------------------- arithmetic


def _binary(
    exact: Callable[[Fraction, Fraction], Fraction],
    doubles: Callable[[float, float], float],
) -> Callable[[Constant, Constant], Constant]:
    """An operator that exact numbers have exactly, and doubles as they have it."""

    def value(left: Constant, right: Constant) -> Constant:
        a, b = _needed(left), _needed(right)
        if isinstance(a, float) or isinstance(b, float):
            return _double(doubles(_as_double(a), _as_double(b)))
        result = exact(Fraction(a), Fraction(b))
        if isinstance(a, int) and isinstance(b, int):
            return _integer(math.trunc(result))
        return _decimal(result)

    return value


def _minus(left: Constant, right: Constant | None = None) -> Constant:
    if right is not None:
        return _subtract(left, right)
    number = _needed(left)
    if isinstance(number, float):
        return _double(-number)
    if isinstance(number, int):
        return _integer(-number)
    return _decimal(-number)


_subtract = _binary(lambda a, b: a - b, lambda a, b: a - b)


def _quotient(left: Constant, right: Constant) -> Constant:
    a, b = _needed(left), _needed(right)
    if b == 0:
        raise NoValueError
    if isinstance(a, float) or isinstance(b, float):
        divisor = _as_double(b)
        if divisor == 0:
            raise NoValueError
        return _double(_as_double(a) / divisor)
    ratio = Fraction(a) / Fraction(b)
    if isinstance(a, int) and isinstance(b, int):
        return _integer(math.trunc(ratio))
    return _decimal(_rounded(ratio))


def _rounded(ratio: Fraction) -> Fraction:
    """The nearest fraction of so many digits, the even one of two."""
    if ratio == 0:
        return ratio
    power = 0
    while abs(ratio) * Fraction(10) ** power >= 10**QUOTIENT_DIGITS:
        power -= 1
    while abs(ratio) * Fraction(10) ** power < 10 ** (QUOTIENT_DIGITS - 1):
        power += 1
    return round(ratio * Fraction(10) ** power) / Fraction(10) ** power


def _remainder(left: Constant, right: Constant) -> Constant:
    a, b = _needed(left), _needed(right)
    if b == 0:
        raise NoValueError
    if isinstance(a, float) or isinstance(b, float):
        dividend, divisor = _as_double(a), _as_double(b)
        if divisor == 0:
            raise NoValueError
        if math.isinf(dividend):
            return _double(math.nan)
        return _double(math.fmod(dividend, divisor))
    rest = a - b * math.trunc(Fraction(a) / Fraction(b))
    return _integer(rest) if isinstance(rest, int) else _decimal(rest)


def _absolute(argument: Constant) -> Constant:
    number = _needed(argument)
    if isinstance(number, float):
        return _double(math.fabs(number))
    if isinstance(number, int):
        # Not computed with, so it may be as long as it likes.
        return Constant(Kind.INTEGER, argument.text.lstrip("-"))
    return _decimal(number if number > 0 else -number)


# ------------------------------------------------------------------- comparisons


def order_of(left: Constant, right: Constant) -> int | None:
    """-1, 0 or 1 as the left one is before, level with or after the right one."""
    a, b = number_of(left), number_of(right)
    if a is not None and b is not None:
        return _order_of_numbers(a, b)
    if left.kind is not right.kind or left.kind is Kind.BLANK:
        return None
    mine, others = left.text.split("\0"), right.text.split("\0")
    if mine[:-1] != others[:-1]:
        return None
    return (mine[-1] > others[-1]) - (mine[-1] < others[-1])


def _order_of_numbers(a: Number, b: Number) -> int | None:
    if _is_nan(a) or _is_nan(b):
        return None
    keys = [_key(each) for each in (a, b)]
    return (keys[0] > keys[1]) - (keys[0] < keys[1])


def _is_nan(number: Number) -> bool:
    return isinstance(number, float) and math.isnan(number)


def _key(number: Number) -> tuple[int, Fraction]:
    """A number as a place in the order of all numbers, infinite ones included."""
    if isinstance(number, float) and math.isinf(number):
        return (1 if number > 0 else -1), Fraction(0)
    return 0, Fraction(number)


def _compared(*accepted: int) -> Callable[[Constant, Constant], Constant]:
    return lambda left, right: _boolean(value=order_of(left, right) in accepted)


def _extreme(wanted: int) -> Callable[..., Constant]:
    def value(*arguments: Constant) -> Constant:
        best = arguments[0]
        for other in arguments[1:]:
            order = order_of(other, best)
            if order is None:
                raise NoValueError
            best = other if order == wanted else best
        return best

    return value


# ------------------------------------------------------------------------- texts


def text_of(argument: Constant) -> str:
    """The text of a constant without tag, datatype or brackets."""
    text = argument.text.split("\0")[-1]
    return f"_:{text}" if argument.kind is Kind.BLANK else text


def _text(argument: Constant) -> str:
    if argument.kind not in _TEXTS:
        raise NoValueError(argument)
    return text_of(argument)


def _substring(
    text: Constant, start: Constant, length: Constant | None = None
) -> Constant:
    whole = _text(text)
    wanted = [start] if length is None else [start, length]
    if any(each.kind is not Kind.INTEGER for each in wanted):
        raise NoValueError
    first = _integer_of(start.text)
    last = len(whole) if length is None else first + _integer_of(length.text) - 1
    return _string("".join(c for n, c in enumerate(whole, 1) if first <= n <= last))


def _test(
    holds: Callable[[str, str], bool],
) -> Callable[[Constant, Constant], Constant]:
    return lambda text, part: _boolean(value=holds(_text(text), _text(part)))


def _regex(
    text: Constant, pattern: Constant, flags: Constant | None = None
) -> Constant:
    letters = "" if flags is None else _text(flags)
    if not set(letters) <= set("ismx"):
        raise NoValueError
    options = f"(?{''.join(sorted(set(letters)))})" if letters else ""
    try:
        found = re.search(options + _text(pattern), _text(text))
    except re.error:
        raise NoValueError from None
    return _boolean(value=found is not None)


# ------------------------------------------------------------------- conversions


def _to_integer(argument: Constant) -> Constant:
    if argument.kind is Kind.STRING:
        body = argument.text.strip()
        if not re.fullmatch(r"[+-]?\d+", body, re.ASCII):
            raise NoValueError
        return _integer(_integer_of(body.lstrip("+")))
    number = _needed(argument)
    if isinstance(number, float) and not math.isfinite(number):
        raise NoValueError
    return _integer(math.trunc(number))


def _to_double(argument: Constant) -> Constant:
    if argument.kind is not Kind.STRING:
        return _double(_as_double(_needed(argument)))
    if "_" in argument.text or not argument.text.isascii():
        raise NoValueError
    try:
        return _double(float(argument.text))
    except ValueError:
        raise NoValueError from None


_DATATYPES = {
    Kind.STRING: XSD + "string",
    Kind.INTEGER: XSD + "integer",
    Kind.DECIMAL: XSD + "decimal",
    Kind.DOUBLE: XSD + "double",
    Kind.BOOLEAN: XSD + "boolean",
    Kind.IRI: _RDFS + "Resource",
    Kind.BLANK: _RDFS + "Resource",
}


def _datatype(argument: Constant) -> Constant:
    tag = argument.text.split("\0")[0]
    if argument.kind is Kind.LANGUAGE:
        name = _RDF + ("dirLangString" if "--" in tag else "langString")
        return constant(IRI(name))
    return constant(IRI(_DATATYPES.get(argument.kind, tag)))


def _language(argument: Constant) -> Constant:
    is_tagged = argument.kind is Kind.LANGUAGE
    return _string(re.split("--|\0", argument.text)[0] if is_tagged else "")


def _skolem(*arguments: Constant) -> Constant:
    """States keep these names, so that the digest is a promise, too."""
    parts = []
    for each in arguments:
        data = each.text.encode("utf-8", "surrogatepass")
        parts.append(b"%d:%d:%s" % (each.kind, len(data), data))
    digest = hashlib.blake2b(b"".join(parts), digest_size=16)
    return Constant(Kind.BLANK, "sk" + digest.hexdigest())


def _is_literal(argument: Constant) -> bool:
    return argument.kind.name not in {"IRI", "BLANK"}


def _number_of(argument: Constant) -> Decimal | None:
    is_exact = argument.kind in {Kind.INTEGER, Kind.DECIMAL}
    return Decimal(argument.text) if is_exact else None


def _day_of(argument: Constant) -> datetime.date | None:
    datatype, _, lexical = argument.text.partition("\0")
    if argument.kind is not Kind.TYPED or datatype != XSD + "date":
        return None
    return datetime.date.fromisoformat(lexical)


def _single_of(argument: Constant) -> str | None:
    datatype, _, lexical = argument.text.partition("\0")
    if argument.kind is not Kind.TYPED or datatype != XSD + "float":
        return None
    try:
        return str(float(lexical))
    except ValueError:
        return None


def _literal_outside(argument: Constant, datatype: Constant) -> Constant:
    """For the datatypes that the tests name; all else is no datatype."""
    number, day = _number_of(argument), _day_of(argument)
    is_whole = number is not None and number == number.to_integral_value()
    is_inside = {
        XSD + "decimal": number is not None,
        XSD + "integer": is_whole,
        XSD + "byte": number is not None and is_whole and -128 <= number < 128,
        XSD + "long": number is not None and is_whole and -(2**63) <= number < 2**63,
        XSD + "string": argument.kind is Kind.STRING,
        XSD + "date": day is not None,
        XSD + "float": _single_of(argument) is not None,
    }.get(datatype.text, True)
    return _boolean(value=_is_literal(argument) and not is_inside)


def _values_differ(left: Constant, right: Constant) -> Constant:
    values = []
    for each in (left, right):
        found: list[object] = [_number_of(each), _day_of(each), _single_of(each)]
        if each.kind in {Kind.STRING, Kind.DOUBLE, Kind.BOOLEAN, Kind.LANGUAGE}:
            found.append((each.kind, each.text))
        known = [value for value in found if value is not None]
        if not known:
            return _boolean(value=False)
        values.append((type(known[0]), known[0]))
    return _boolean(value=values[0] != values[1])


def _bitwise(rule: Callable[[bool, bool], bool]) -> Callable[..., Constant]:
    """A function of the bits of two integers, one bit after the other."""

    def evaluate(left: Constant, right: Constant) -> Constant:
        a, b = _whole(left), _whole(right)
        size = max(a.bit_length(), b.bit_length()) + 1
        bits = [
            rule(a // 2**at % 2 == 1, b // 2**at % 2 == 1) << at for at in range(size)
        ]
        return _integer(sum(bits[:-1]) - bits[-1])

    return evaluate


def _whole(argument: Constant) -> int:
    if argument.kind is not Kind.INTEGER:
        raise NoValueError(argument)
    return _integer_of(argument.text)


def _times_two_to(sign: int) -> Callable[..., Constant]:
    def evaluate(left: Constant, right: Constant) -> Constant:
        a, b = _whole(left), _whole(right)
        if b < 0 or (a and sign > 0 and b > 4 * MOST_DIGITS):
            raise NoValueError(right)
        if not a:
            return _integer(0)
        if sign > 0:
            return _integer(a * 2**b)
        return _integer(a // 2**b if b < 4 * MOST_DIGITS else -(a < 0))

    return evaluate


def _power(left: Constant, right: Constant) -> Constant:
    a, b = _whole(left), _whole(right)
    if b < 0 or (abs(a) > 1 and b > 4 * MOST_DIGITS):
        raise NoValueError(right)
    if abs(a) <= 1:
        return _integer(1 if b == 0 else a if b % 2 else abs(a))
    result = 1
    for _ in range(b):
        result *= a
        if abs(result) >= 10**MOST_DIGITS:
            raise NoValueError(right)
    return _integer(result)


_DEFINITIONS: dict[str, Callable[..., Constant]] = {
    "+": _binary(lambda a, b: a + b, lambda a, b: a + b),
    "-": _minus,
    "*": _binary(lambda a, b: a * b, lambda a, b: a * b),
    "/": _quotient,
    "%": _remainder,
    "abs": _absolute,
    "power": _power,
    "bit_and": _bitwise(lambda a, b: a and b),
    "bit_or": _bitwise(lambda a, b: a or b),
    "bit_xor": _bitwise(lambda a, b: a != b),
    "shift_left": _times_two_to(1),
    "shift_right": _times_two_to(-1),
    "=": lambda left, right: _boolean(value=left == right),
    "!=": lambda left, right: _boolean(value=left != right),
    "<": _compared(-1),
    "<=": _compared(-1, 0),
    ">": _compared(1),
    ">=": _compared(0, 1),
    "min": _extreme(-1),
    "max": _extreme(1),
    "str": lambda argument: _string(text_of(argument)),
    "concat": lambda *arguments: _string("".join(map(text_of, arguments))),
    "length": lambda argument: _integer(len(_text(argument))),
    "substr": _substring,
    "upper": lambda argument: _string(_text(argument).upper()),
    "lower": lambda argument: _string(_text(argument).lower()),
    "contains": _test(lambda text, part: text.find(part) >= 0),
    "starts_with": _test(lambda text, part: text[: len(part)] == part),
    "ends_with": _test(lambda text, part: text[::-1].find(part[::-1]) == 0),
    "regex": _regex,
    "int": _to_integer,
    "double": _to_double,
    "datatype": _datatype,
    "language": _language,
    "skolem": _skolem,
    "is_literal": lambda argument: _boolean(value=_is_literal(argument)),
    "literal_outside": _literal_outside,
    "values_differ": _values_differ,
}
