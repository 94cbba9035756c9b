"""Universities: a look-alike of the LUBM benchmark, in plain predicates.

The data describe universities with departments, staff, students, courses, research
groups and publications, whose numbers follow the published profile of LUBM. Names,
rules and code are Evermat's own, so sizes compare with LUBM and answers do not. A
university has about 130,000 facts, of which a third are names and addresses that rules
only use for the class of their subject. About half as many are derived.

Classes are unary predicates and properties binary ones. The rules are generated from
the tables below: hierarchies of classes and properties, domains and ranges, inverses,
one transitive property, and a few rules with joins at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evermat.bench.generators.problem import Problem
from evermat.columns import terms_of_kind
from evermat.io.ntriples import ntriples_blocks
from evermat.lang.lexer import RDF_TYPE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


Ids = NDArray[np.int64]

# ------------------------------------------------------------------------- rules

SUBCLASSES = {
    "employee": "person",
    "student": "person",
    "director": "person",
    "faculty": "employee",
    "assistant": "employee",
    "professor": "faculty",
    "lecturer": "faculty",
    "full_professor": "professor",
    "associate_professor": "professor",
    "assistant_professor": "professor",
    "visiting_professor": "professor",
    "chair": "professor",
    "dean": "professor",
    "postdoc": "faculty",
    "teaching_assistant": "assistant",
    "research_assistant": "assistant",
    "undergraduate": "student",
    "graduate": "student",
    "university": "organisation",
    "college": "organisation",
    "department": "organisation",
    "institute": "organisation",
    "research_group": "organisation",
    "graduate_course": "course",
    "course": "work",
    "research": "work",
    "article": "publication",
    "book": "publication",
    "manual": "publication",
    "software": "publication",
    "journal_article": "article",
    "conference_paper": "article",
    "technical_report": "article",
}

SUBPROPERTIES = {
    "head_of": "works_for",
    "works_for": "member_of",
    "bachelor_from": "degree_from",
    "master_from": "degree_from",
    "doctor_from": "degree_from",
    "teacher_of": "involved_in",
    "teaching_assistant_of": "involved_in",
}

INVERSES = {
    "member_of": "member",
    "degree_from": "alumnus",
    "head_of": "headed_by",
    "teacher_of": "taught_by",
}

DOMAINS = {
    "advisor": "person",
    "bachelor_from": "person",
    "master_from": "person",
    "doctor_from": "person",
    "degree_from": "person",
    "alumnus": "university",
    "email": "person",
    "telephone": "person",
    "interest": "faculty",
    "head_of": "employee",
    "works_for": "employee",
    "member_of": "person",
    "member": "organisation",
    "teacher_of": "faculty",
    "teaching_assistant_of": "teaching_assistant",
    "takes_course": "student",
    "author": "publication",
    "part_of": "organisation",
    "affiliated": "organisation",
    "publishes": "organisation",
    "project_of": "research",
    "documented_in": "software",
}

RANGES = {
    "advisor": "professor",
    "bachelor_from": "university",
    "master_from": "university",
    "doctor_from": "university",
    "degree_from": "university",
    "alumnus": "person",
    "works_for": "organisation",
    "member_of": "organisation",
    "member": "person",
    "teacher_of": "course",
    "teaching_assistant_of": "course",
    "takes_course": "course",
    "author": "person",
    "part_of": "organisation",
    "affiliated": "organisation",
    "publishes": "publication",
    "project_of": "research_group",
    "documented_in": "publication",
}

JOINS = """\
part_of(?x, ?z) :- part_of(?x, ?y), part_of(?y, ?z) .
chair(?x) :- head_of(?x, ?y), department(?y) .
dean(?x) :- head_of(?x, ?y), college(?y) .
director(?x) :- head_of(?x, ?y), institute(?y) .
student(?x) :- takes_course(?x, ?y), course(?y) .
teaching_assistant(?x) :- teaching_assistant_of(?x, ?y), course(?y) .
instructor(?x, ?z) :- graduate(?x), takes_course(?x, ?y), taught_by(?y, ?z) .
colleague_of_head(?x, ?z) :- works_for(?x, ?y), headed_by(?y, ?z) .
local_alumnus(?x, ?z) :- degree_from(?x, ?z), works_for(?x, ?y), part_of(?y, ?z) .
publishes(?z, ?x) :- author(?x, ?y), works_for(?y, ?z) .
own_advisor(?x, ?y) :- advisor(?x, ?y), instructor(?x, ?y) .
"""


def rules() -> str:
    """Return the program, about a hundred rules."""
    lines = [f"{sup}(?x) :- {sub}(?x) ." for sub, sup in SUBCLASSES.items()]
    lines += [f"{sup}(?x, ?y) :- {sub}(?x, ?y) ." for sub, sup in SUBPROPERTIES.items()]
    lines += [f"{inv}(?y, ?x) :- {name}(?x, ?y) ." for name, inv in INVERSES.items()]
    lines += [f"{cls}(?x) :- {name}(?x, ?y) ." for name, cls in DOMAINS.items()]
    lines += [f"{cls}(?y) :- {name}(?x, ?y) ." for name, cls in RANGES.items()]
    return "\n".join(lines) + "\n" + JOINS


# ------------------------------------------------------------------------- facts


@dataclass(slots=True)
class _Campus:
    """Facts under construction: for each predicate, columns of names."""

    random: np.random.Generator
    unary: dict[str, list[pa.Array]] = field(default_factory=dict)
    binary: dict[str, list[tuple[pa.Array, pa.Array]]] = field(default_factory=dict)

    def state(self, name: str, things: pa.Array) -> None:
        """Add `name(thing)` for each thing."""
        self.unary.setdefault(name, []).append(things)

    def relate(self, name: str, left: pa.Array, right: pa.Array) -> None:
        """Add `name(left, right)` row by row."""
        self.binary.setdefault(name, []).append((left, right))

    def amounts(self, groups: int, least: int, most: int) -> Ids:
        """Return for each group a random number of members."""
        return self.random.integers(least, most + 1, size=groups)

    def pick(self, owners: Ids, starts: Ids, counts: Ids) -> Ids:
        """Return for each owner a random member of its group, by number."""
        room = counts[owners]
        return starts[owners] + (self.random.random(len(owners)) * room).astype(
            np.int64
        )

    def tables(self) -> dict[str, pa.Table]:
        """Return the facts, each once."""
        found = {}
        for name, parts in self.unary.items():
            found[name] = pa.table({"x": pa.concat_arrays(parts)})
        for name, pairs in self.binary.items():
            left = pa.concat_arrays([pair[0] for pair in pairs])
            right = pa.concat_arrays([pair[1] for pair in pairs])
            table = pa.table({"x": left, "y": right})
            found[name] = table.group_by(["x", "y"], use_threads=False).aggregate([])
        return found


def _names(prefix: str, numbers: Ids) -> pa.Array:
    texts = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise(prefix, texts, "")


def _spread(counts: Ids) -> Ids:
    """Return the group of each member: counts 2, 1 give 0, 0, 1."""
    return np.repeat(np.arange(len(counts)), counts)


def _starts(counts: Ids) -> Ids:
    """Return the number of the first member of each group."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)


def universities(count: int, *, departments: float = 20, seed: int = 1) -> Problem:
    """`count` universities, with about `departments` departments each.

    Fewer departments make smaller universities, for tests.
    """
    campus = _Campus(np.random.default_rng(seed))
    least, most = max(1, round(departments * 0.75)), max(1, round(departments * 1.25))
    per_university = campus.amounts(count, least, most)
    home = _spread(per_university)
    campus.state("university", _names("university", np.arange(count)))
    _departments(campus, home)
    staff = _staff(campus, home, count)
    courses = _courses(campus, staff)
    students = _students(campus, staff, courses, count)
    _publications(campus, staff, students)
    return Problem(rules(), campus.tables())


def _departments(campus: _Campus, home: Ids) -> None:
    departments = _names("department", np.arange(len(home)))
    campus.state("department", departments)
    campus.relate("part_of", departments, _names("university", home))
    campus.relate("name", departments, _names("Department ", np.arange(len(home))))
    groups = _spread(campus.amounts(len(home), 10, 20))
    named = _names("group", np.arange(len(groups)))
    campus.state("research_group", named)
    campus.relate("part_of", named, _names("department", groups))


@dataclass(frozen=True, slots=True)
class _Members:
    """People or courses, numbered department by department."""

    department: Ids
    counts: Ids
    names: pa.Array

    @property
    def starts(self) -> Ids:
        return _starts(self.counts)

    def named(self, numbers: Ids) -> pa.Array:
        return self.names.take(pa.array(numbers))


_RANKS = {
    # rank: members of a department, publications of each
    "full_professor": ((7, 10), (15, 20)),
    "associate_professor": ((10, 14), (10, 18)),
    "assistant_professor": ((8, 11), (5, 10)),
    "lecturer": ((5, 7), (0, 5)),
}


@dataclass(frozen=True, slots=True)
class _Staff:
    everyone: _Members
    professors: _Members
    by_rank: dict[str, _Members]


def _staff(campus: _Campus, home: Ids, universities: int) -> _Staff:
    by_rank = {}
    for rank, ((least, most), _) in _RANKS.items():
        counts = campus.amounts(len(home), least, most)
        department = _spread(counts)
        names = _names(rank, np.arange(len(department)))
        by_rank[rank] = _Members(department, counts, names)
        campus.state(rank, names)
        _person(campus, names, rank)
        campus.relate("works_for", names, _names("department", department))
        for degree in ("bachelor_from", "master_from", "doctor_from"):
            campus.relate(degree, names, _anywhere(campus, len(names), universities))
    leaders = by_rank["full_professor"]
    heads = leaders.named(leaders.starts)
    campus.relate("head_of", heads, _names("department", np.arange(len(home))))
    professors = [by_rank[rank] for rank in _RANKS if rank != "lecturer"]
    for members in professors:
        people = members.names
        topics = campus.random.integers(0, 30, size=len(people))
        campus.relate("interest", people, _names("topic", topics))
    return _Staff(_merge(list(by_rank.values())), _merge(professors), by_rank)


def _merge(parts: list[_Members]) -> _Members:
    """Return all members of several kinds, department by department."""
    department = np.concatenate([part.department for part in parts])
    order = np.argsort(department, kind="stable")
    names = pa.concat_arrays([part.names for part in parts]).take(pa.array(order))
    counts = np.sum([part.counts for part in parts], axis=0)
    return _Members(department[order], counts, names)


def _anywhere(campus: _Campus, people: int, universities: int) -> pa.Array:
    """Return a university for each person; half of them are not in the data."""
    chosen = campus.random.integers(0, 2 * universities, size=people)
    return _names("university", chosen)


def _person(campus: _Campus, names: pa.Array, kind: str) -> None:
    campus.relate("name", names, pc.binary_join_element_wise(kind, names, " "))
    campus.relate("email", names, pc.binary_join_element_wise(names, "mail.org", "@"))
    numbers = campus.random.integers(10**8, 10**9, size=len(names))
    campus.relate("telephone", names, _names("+", numbers))


@dataclass(frozen=True, slots=True)
class _Courses:
    basic: _Members
    advanced: _Members


def _courses(campus: _Campus, staff: _Staff) -> _Courses:
    made = []
    for kind in ("course", "graduate_course"):
        teachers = staff.everyone
        each = campus.amounts(len(teachers.names), 1, 2)
        teacher = _spread(each)
        names = _names(kind, np.arange(len(teacher)))
        campus.state(kind, names)
        campus.relate("name", names, pc.binary_join_element_wise("Course", names, " "))
        campus.relate("teacher_of", teachers.named(teacher), names)
        department = teachers.department[teacher]
        counts = np.bincount(department, minlength=len(teachers.counts))
        made.append(_Members(department, counts.astype(np.int64), names))
    return _Courses(*made)


def _students(
    campus: _Campus, staff: _Staff, courses: _Courses, universities: int
) -> _Members:
    """Enrol students; return the graduates."""
    basic = _enrol(campus, "undergraduate", staff, (8, 14))
    _attend(campus, basic, courses.basic, (2, 4))
    _advise(campus, basic, staff.professors, 0.2)
    advanced = _enrol(campus, "graduate", staff, (3, 4))
    _attend(campus, advanced, courses.advanced, (1, 3))
    _advise(campus, advanced, staff.professors, 1.0)
    people = advanced.names
    origin = _anywhere(campus, len(people), universities)
    campus.relate("bachelor_from", people, origin)
    _assist(campus, advanced, courses.basic)
    return advanced


def _enrol(
    campus: _Campus, kind: str, staff: _Staff, ratio: tuple[int, int]
) -> _Members:
    """Enrol students of each department, in a ratio to its staff."""
    sizes = staff.everyone.counts
    counts = (sizes * campus.random.uniform(*ratio, size=len(sizes))).astype(np.int64)
    department = _spread(counts)
    names = _names(kind, np.arange(len(department)))
    campus.state(kind, names)
    _person(campus, names, kind)
    campus.relate("member_of", names, _names("department", department))
    return _Members(department, counts, names)


def _attend(
    campus: _Campus, students: _Members, courses: _Members, each: tuple[int, int]
) -> None:
    student = _spread(campus.amounts(len(students.names), *each))
    course = campus.pick(students.department[student], courses.starts, courses.counts)
    campus.relate("takes_course", students.named(student), courses.named(course))


def _advise(
    campus: _Campus, students: _Members, advisors: _Members, share: float
) -> None:
    student = np.flatnonzero(campus.random.random(len(students.names)) < share)
    home = students.department[student]
    advisor = campus.pick(home, advisors.starts, advisors.counts)
    campus.relate("advisor", students.named(student), advisors.named(advisor))


def _assist(campus: _Campus, graduates: _Members, courses: _Members) -> None:
    fortune = campus.random.random(len(graduates.names))
    teaching = np.flatnonzero(fortune < 0.22)  # noqa: PLR2004  the share LUBM has
    course = campus.pick(graduates.department[teaching], courses.starts, courses.counts)
    helpers = graduates.named(teaching)
    campus.state("teaching_assistant", helpers)
    campus.relate("teaching_assistant_of", helpers, courses.named(course))
    campus.state("research_assistant", graduates.named(np.flatnonzero(fortune > 0.71)))  # noqa: PLR2004


def _publications(campus: _Campus, staff: _Staff, graduates: _Members) -> None:
    """Publish papers of the staff; some have graduates as co-authors."""
    for rank, (_, (least, most)) in _RANKS.items():
        authors = staff.by_rank[rank]
        author = _spread(campus.amounts(len(authors.names), least, most))
        names = _names(f"paper_of_{rank}", np.arange(len(author)))
        campus.state("publication", names)
        campus.relate("name", names, pc.binary_join_element_wise("On", names, " "))
        campus.relate("author", names, authors.named(author))
        joint = np.flatnonzero(campus.random.random(len(author)) < 0.8)  # noqa: PLR2004
        home = authors.department[author[joint]]
        helper = campus.pick(home, graduates.starts, graduates.counts)
        campus.relate("author", names.take(pa.array(joint)), graduates.named(helper))


# ------------------------------------------------------------------- university people

# Activities of people besides their studies: friends, home towns, and likes.
#
# UOBM adds these to LUBM, and has about 245,000 explicit facts per university where
# LUBM has 130,000, and nearly twice as many facts in all as explicit ones. This
# look-alike does the same to the look-alike of LUBM: people have friends (which is
# symmetric) and others from their home town (symmetric and transitive), and they like,
# love and are crazy about sports, music and other things; to love something is to like
# it, and vice versa. The numbers of each were chosen so that the sums are those of
# UOBM.


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
"""Facts per person."""
NEIGHBOURS = 300
"""Friends are among this many people listed before: most are of one department."""
FROM_ONE_TOWN = 3
"""Number of people from one town that know each other."""


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
    """Return two columns with distinct rows."""
    pairs = pa.table([left, right], names=["c1", "c2"])
    return pairs.filter(pc.not_equal(left, right)).group_by(["c1", "c2"]).aggregate([])


# ------------------------------------------------------------------ university triples

# The universities as RDF: the same facts as N-Triples, the same rules over triples.


NAMESPACE = "http://universities.example/"
LITERALS = frozenset({"name", "email", "telephone"})
"""Properties whose values are strings."""
FILES = 4

_UNARY = re.compile(r"(\w+)\((\?\w+)\)")
_BINARY = re.compile(r"(\w+)\((\?\w+), (\?\w+)\)")


def triple_rules() -> str:
    """Return the rules over triples: classes are types."""
    text = _BINARY.sub(r"[\2, :\1, \3]", rules())
    text = _UNARY.sub(r"[\2, a, :\1]", text)
    return f"@prefix : <{NAMESPACE}> .\n{text}"


def triples(facts: Mapping[str, pa.Table]) -> pa.Table:
    """Return facts of plain predicates as one table of triples."""
    return pa.concat_tables(_triples(name, table) for name, table in facts.items())


def write_triples(problem: Problem, folder: Path) -> list[Path]:
    """Write the facts as a few files of N-Triples."""
    table = triples(problem.facts)
    rows = -(-table.num_rows // FILES)
    paths = []
    for number in range(FILES):
        path = folder / f"universities-{number}.nt"
        with path.open("wb") as file:
            for block in ntriples_blocks(table.slice(number * rows, rows)):
                file.write(block)
        paths.append(path)
    return paths


def _triples(name: str, table: pa.Table) -> pa.Table:
    subjects = _things(table.column(0))
    property_, type_ = (
        terms_of_kind(Kind.IRI, pa.repeat(pa.scalar(iri), table.num_rows))
        for iri in (NAMESPACE + name, RDF_TYPE.text)
    )
    if table.num_columns == 1:
        columns = [subjects, type_, property_]
    elif name in LITERALS:
        texts = table.column(1).combine_chunks()
        columns = [subjects, property_, terms_of_kind(Kind.STRING, texts)]
    else:
        columns = [subjects, property_, _things(table.column(1))]
    return pa.table(columns, names=["s", "p", "o"])


def _things(column: pa.ChunkedArray) -> pa.StructArray:
    names = pc.binary_join_element_wise(NAMESPACE, column.combine_chunks(), "")
    return terms_of_kind(Kind.IRI, names)
