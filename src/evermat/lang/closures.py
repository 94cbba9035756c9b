"""Detection of rules that make a relation transitive, symmetric or reflexive.

Names of variables and the order of atoms do not matter. A relation may be binary, or
part of a wider one with constants in all but two places: `[?x, :p, ?y]`, or
`link(?x, ?y, "rail")`.

| rule                                  | kind                              |
| ------------------------------------- | --------------------------------- |
| `r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .` | transitive                        |
| `r(?x, ?z) :- r(?x, ?y), e(?y, ?z) .` | left-linear, with edges `e`       |
| `r(?x, ?z) :- e(?x, ?y), r(?y, ?z) .` | right-linear                      |
| `r(?y, ?x) :- r(?x, ?y) .`            | symmetric                         |
| `r(?x, ?x) :- r(?x, ?y) .`            | reflexive on sources              |
| `r(?y, ?y) :- r(?x, ?y) .`            | reflexive on targets              |

A closure is a transitive or a linear rule, together with the symmetric and reflexive
rules of a transitive one. A linear rule is only a closure if none of its derived facts
can affect its edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from evermat.lang.syntax import Atom, Term, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evermat.lang.syntax import Rule
    from evermat.values import Constant


_TWO = 2


class ClosureSort(Enum):
    """The kinds of closures; the values are for reports."""

    TRANSITIVE = "transitive closure"
    SYMMETRIC = "symmetric-transitive closure"
    LEFT_LINEAR = "closure along edges, left-linear"
    RIGHT_LINEAR = "closure along edges, right-linear"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an atom with variables in two places and constants in all others.

    Attributes:
        source, target: the two places; a step leads from the first to the second.
        constants: the other places, and their constants.
    """

    predicate: str
    arity: int
    source: int
    target: int
    constants: tuple[tuple[int, Constant], ...]

    def overlaps(self, other: Form) -> bool:
        """Return whether a fact can have both forms."""
        if (self.predicate, self.arity) != (other.predicate, other.arity):
            return False
        theirs = dict(other.constants)
        return all(theirs.get(at, value) == value for at, value in self.constants)

    def may_be(self, atom: Atom) -> bool:
        """Return whether an atom can match a fact of this form."""
        return (self.predicate, self.arity) == (atom.predicate, atom.arity) and all(
            atom.arguments[at] == Term(value)
            or isinstance(atom.arguments[at], Variable)
            for at, value in self.constants
        )

    def flipped(self) -> Form:
        """Return the form with source and target exchanged."""
        return Form(
            self.predicate, self.arity, self.target, self.source, self.constants
        )

    def __str__(self) -> str:
        arguments = [str(dict(self.constants).get(at, "")) for at in range(self.arity)]
        arguments[self.source], arguments[self.target] = "?x", "?y"
        if self.predicate == "triple":
            return f"[{', '.join(arguments)}]"
        return f"{self.predicate}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class ClosureRules:
    """Rules that together define a closure.

    Attributes:
        form: the facts that they derive.
        edges: for the linear kinds, the facts along which steps lead.
        loops: whether sources (0) and targets (1) are related to themselves.
        rules: the rules.
    """

    sort: ClosureSort
    form: Form
    edges: Form | None
    loops: frozenset[int]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class _Linear:
    sort: ClosureSort
    edges: Form
    rule: Rule


class _Group:
    """The rules about one form."""

    def __init__(self) -> None:
        self.transitive: list[Rule] = []
        self.symmetric: list[Rule] = []
        self.reflexive: list[tuple[int, Rule]] = []
        self.linear: list[_Linear] = []


def find_closures(
    rules: Iterable[Rule], is_local: Callable[[Rule, Atom], bool]
) -> list[ClosureRules]:
    """Return the closures among normal rules; no two of them derive the same facts.

    Args:
        rules: rules of one stratum.
        is_local: whether an atom of a rule depends on the rule's head.
    """
    groups: dict[Form, _Group] = {}
    for rule in rules:
        _sort_in(rule, groups, is_local)
    found: list[ClosureRules] = []
    for form, group in groups.items():
        closure = _closure(form, group)
        if closure is not None and not any(form.overlaps(c.form) for c in found):
            found.append(closure)
    return found


def _closure(form: Form, group: _Group) -> ClosureRules | None:
    if group.transitive:
        reflexive = tuple(rule for _, rule in group.reflexive)
        loops = frozenset(at for at, _ in group.reflexive)
        rules = (*group.transitive, *group.symmetric, *reflexive)
        sort = ClosureSort.TRANSITIVE
        if group.symmetric:
            sort, loops = ClosureSort.SYMMETRIC, frozenset()
        return ClosureRules(sort, form, None, loops, rules)
    if group.linear:
        # One of several: the others are evaluated like any rule.
        linear = group.linear[0]
        rules = (linear.rule,)
        return ClosureRules(linear.sort, form, linear.edges, frozenset(), rules)
    return None


def _sort_in(
    rule: Rule, groups: dict[Form, _Group], is_local: Callable[[Rule, Atom], bool]
) -> None:
    atoms = [element for element in rule.body if isinstance(element, Atom)]
    if len(atoms) != len(rule.body):
        return
    head = _read(rule.head)
    if head is None:
        return
    form, (first, last) = head
    if len(atoms) == 1:
        _sort_in_short(rule, form, (first, last), groups)
    elif len(atoms) == _TWO and first != last:
        _sort_in_long(rule, form, (first, last), groups, is_local)


def _sort_in_short(
    rule: Rule, form: Form, ends: tuple[str, str], groups: dict[Form, _Group]
) -> None:
    """Classify a rule with one body atom as symmetric or reflexive."""
    (atom,) = rule.positive_atoms()
    body = _read(atom)
    if body is None or body[0] != form:
        return
    first, last = body[1]
    group = groups.setdefault(form, _Group())
    if first == last:
        return
    if ends == (last, first):
        group.symmetric.append(rule)
    elif ends == (first, first):
        group.reflexive.append((0, rule))
    elif ends == (last, last):
        group.reflexive.append((1, rule))


def _sort_in_long(
    rule: Rule,
    form: Form,
    ends: tuple[str, str],
    groups: dict[Form, _Group],
    is_local: Callable[[Rule, Atom], bool],
) -> None:
    """Classify a rule with two body atoms as transitive or linear."""
    atoms = tuple(rule.positive_atoms())
    steps = _steps(atoms, ends)
    if steps is None:
        return
    (early, early_atom), (late, late_atom) = steps
    group = groups.setdefault(form, _Group())
    if early == form and late == form:
        group.transitive.append(rule)
    elif early == form and not is_local(rule, late_atom) and not late.overlaps(form):
        group.linear.append(_Linear(ClosureSort.LEFT_LINEAR, late, rule))
    elif late == form and not is_local(rule, early_atom) and not early.overlaps(form):
        group.linear.append(_Linear(ClosureSort.RIGHT_LINEAR, early, rule))


def _steps(
    atoms: Sequence[Atom], ends: tuple[str, str]
) -> tuple[tuple[Form, Atom], tuple[Form, Atom]] | None:
    """Order two atoms as a step from the first end, and one to the last end."""
    first, last = ends
    for early_atom, late_atom in (atoms, tuple(reversed(atoms))):
        early, late = _read(early_atom), _read(late_atom)
        if early is None or late is None:
            return None
        early_form, (a, b) = early
        late_form, (c, d) = late
        if a != first and b == first:
            early_form, a, b = early_form.flipped(), b, a
        if d != last and c == last:
            late_form, c, d = late_form.flipped(), d, c
        if (a, b, d) == (first, c, last) and b not in ends:
            return (early_form, early_atom), (late_form, late_atom)
    return None


def _read(atom: Atom) -> tuple[Form, tuple[str, str]] | None:
    """Return an atom's form and its two variables, None if it has no such form."""
    places: list[int] = []
    names: list[str] = []
    constants: list[tuple[int, Constant]] = []
    for at, argument in enumerate(atom.arguments):
        match argument:
            case Variable(name=name):
                places.append(at)
                names.append(name)
            case Term(constant=constant):
                constants.append((at, constant))
            case _:
                return None
    if len(places) != _TWO:
        return None
    form = Form(atom.predicate, atom.arity, places[0], places[1], tuple(constants))
    return form, (names[0], names[1])
