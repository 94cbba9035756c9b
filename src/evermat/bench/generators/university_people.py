"""What people do beside their studies: friends, home towns, and what they like.

UOBM adds that to LUBM, and has about 245,000 given facts for each university where LUBM
has 130,000, and nearly twice as many facts in all as given ones. This look-alike does
the same to the look-alike of LUBM: people have friends (which is symmetric) and others
from their home town (symmetric and transitive), and they like, love and are crazy about
sports, music and other things; to love something is to like it, and the other way.
How many of each there are was chosen for the sums to be those of UOBM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

RULES = """
friend_of(?y, ?x) :- friend_of(?x, ?y) .
same_home_town(?y, ?x) :- same_home_town(?x, ?y) .
same_home_town(?x, ?z) :- same_home_town(?x, ?y), same_home_town(?y, ?z) .
like(?x, ?y) :- love(?x, ?y) .
love(?x, ?y) :- like(?x, ?y) .
like(?x, ?y) :- crazy_about(?x, ?y) .
person_with_hobby(?x) :- like(?x, ?y) .
sports_lover(?x) :- like(?x, ?y), sport(?y) .
sports_fan(?x) :- crazy_about(?x, ?y), sport(?y) .
music_lover(?x) :- like(?x, ?y), music(?y) .
person(?x) :- woman(?x) .
person(?x) :- man(?x) .
person(?x) :- friend_of(?x, ?y) .
person(?x) :- same_home_town(?x, ?y) .
"""

SPORTS = ("football", "tennis", "basketball", "swimming", "baseball", "running")
MUSIC = ("opera", "jazz", "rock", "folk")
OTHERS = ("chess", "travelling", "painting", "reading", "gardening", "cooking")
THINGS = (*SPORTS, *MUSIC, *OTHERS)

FRIENDS, LIKES, LOVES, CRAZES = 4.25, 2.0, 0.5, 1.0
"""Facts for each person."""
NEIGHBOURS = 300
"""Friends are among so many that were listed before: most are of one department."""
FROM_ONE_TOWN = 3
"""People of one place of origin that know of each other."""


def add_people(
    facts: dict[str, pa.Table], people: pa.Array, random: np.random.Generator
) -> None:
    """Give people friends, home towns and likes."""
    count = len(people)
    places = np.arange(count)

    def named(numbers: Ids) -> pa.Array:
        return people.take(pa.array(numbers))

    def several(each: float) -> Ids:
        return random.integers(0, count, round(each * count))

    some = several(FRIENDS)
    others = (some - random.integers(1, NEIGHBOURS, some.size)) % count
    facts["friend_of"] = _pairs(named(some), named(others))
    is_first = places % FROM_ONE_TOWN == 0
    facts["same_home_town"] = _pairs(
        named(places[~is_first] - places[~is_first] % FROM_ONE_TOWN),
        named(places[~is_first]),
    )
    things = pa.array(THINGS)
    for name, each in (("like", LIKES), ("love", LOVES), ("crazy_about", CRAZES)):
        some = several(each)
        liked = things.take(pa.array(random.integers(0, len(THINGS), some.size)))
        facts[name] = _pairs(named(some), liked)
    is_woman = random.integers(0, 2, count).astype(np.bool_)
    facts["woman"] = pa.table([named(places[is_woman])], names=["c1"])
    facts["man"] = pa.table([named(places[~is_woman])], names=["c1"])
    facts["sport"] = pa.table([pa.array(SPORTS)], names=["c1"])
    facts["music"] = pa.table([pa.array(MUSIC)], names=["c1"])


def _pairs(left: pa.Array, right: pa.Array) -> pa.Table:
    """Two columns, each row once."""
    pairs = pa.table([left, right], names=["c1", "c2"])
    return pairs.filter(pc.not_equal(left, right)).group_by(["c1", "c2"]).aggregate([])
