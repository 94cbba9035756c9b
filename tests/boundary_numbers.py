"""Numbers at which some representation ends, and their neighbours.

The embedded engine has ids for integers up to 2**30, multiplies up to 2**31, and works
in 64 bits; doubles are exact up to 2**53; Spark's ids are integers up to 2**62.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

POWERS = (30, 31, 32, 33, 53, 62, 63, 64)
BOUNDARIES = tuple(2**power for power in POWERS)

SMALL = tuple(range(-3, 4))

ROOTS = (46_340, 46_341, 65_535, 65_536, 65_537, 92_681, 92_682, 2**26 + 1)
"""Their squares are around 2**31, 2**32, 2**33 and 2**53."""

INTEGERS = tuple(
    sorted(
        {
            *SMALL,
            *chain.from_iterable((root, -root) for root in ROOTS),
            *(
                sign * boundary + step
                for boundary in BOUNDARIES
                for sign in (1, -1)
                for step in (-2, -1, 0, 1)
            ),
            *(sign * number for number in (10**20, 10**40 + 7) for sign in (1, -1)),
        }
    )
)

DOUBLES = (
    0.0,
    -0.0,
    0.1,
    -1.5,
    2.0**30,
    2.0**31 + 0.5,
    -(2.0**32),
    2.0**53,
    -(2.0**53) - 2,
    2.0**63,
    2.0**64,
    1e17,
    1e300,
)
NOT_FINITE = (float("inf"), float("-inf"), float("nan"))

DECIMALS = (
    Decimal("0.0"),
    Decimal("0.1"),
    Decimal("-4.0"),
    Decimal("1073741823.5"),
    Decimal(2**31),
    Decimal("-4294967296.25"),
    Decimal(2**53 + 1),
    Decimal("9223372036854775807.5"),
    Decimal(-(2**64)),
    Decimal("1e-20"),
)


def random_integer(chance: Random) -> int:
    """An integer near a boundary more often than not, else of any length."""
    number = (
        chance.choice(INTEGERS)
        if chance.random() < 0.7
        else chance.getrandbits(chance.randrange(1, 72)) * chance.choice((1, -1))
    )
    return number + chance.choice((0, 0, 0, -1, 1))


def related_integers(chance: Random, size: int) -> list[int]:
    """Integers that are sums, differences, products and quotients of each other.

    By chance alone hardly any result would be a number that is known already.
    """
    numbers = [random_integer(chance), random_integer(chance)]
    while len(numbers) < size:
        a, b = chance.choice(numbers), chance.choice(numbers)
        related = [a + b, a - b, a + 1, a - 1, -a, chance.choice(SMALL)]
        related.append(random_integer(chance))
        if abs(a * b) < 2**80:
            related.append(a * b)
        if b:
            related.append(abs(a) // abs(b))
        numbers.append(chance.choice(related))
    return list(dict.fromkeys(numbers))


def related_numbers(chance: Random, size: int) -> list[int | float | Decimal]:
    """Integers that are related, and a few doubles and decimals beside them."""
    numbers: list[int | float | Decimal] = [*related_integers(chance, size)]
    if chance.random() < 0.4:
        numbers += chance.sample(DOUBLES[:-1], chance.randrange(1, 3))
    if chance.random() < 0.4:
        numbers += chance.sample(DECIMALS, chance.randrange(1, 3))
    if chance.random() < 0.2:
        integer = chance.choice(numbers)
        numbers.append(Decimal(int(integer)))
        numbers.append(float(integer))
    return numbers
