"""Equality in programs: its syntax, its axioms, and rules without equality in bodies.

Two constants are equal if `same_as(?x, ?y)` holds, also written `?x ≈ ?y`, or the
triple `[?x, owl:sameAs, ?y]`; the two are equivalent. Equal constants can be exchanged
in every fact, and every constant that occurs in a fact is equal to itself.

When equal constants are replaced by one representative, a rule reads representatives
only, and equality in a body means that two terms are identical. So rules are converted
to a form in which equality occurs in heads only:

- heads `same_as(?x, ?y)` and `[?x, owl:sameAs, ?y]` become `~same(?x, ?y)`;
- in a body, `same_as(?x, ?y)` is dropped, and `?y` is replaced by `?x`. If nothing
  else binds `?x`, it is any constant that occurs in a fact: `~constant(?x)`;
- `not same_as(?x, ?y)` becomes `?x != ?y`;
- a triple whose predicate is a variable may be an equality, too: such a rule gets a
  twin for that case.

`owl:sameAs` itself must have no other name: a predicate equal to it is refused.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError, Label
from evermat.lang.equality_builtins import (
    COMPUTED,
    NAME,
    Written,
    as_written,
    binding_atoms,
    cases,
    definitions,
    divided,
    names_made,
    names_read,
    reads_other_names,
    with_names,
)
from evermat.lang.strata import rules_needed_for
from evermat.lang.syntax import (
    SAME_AS,
    TRIPLE,
    TRIPLE_ARITY,
    Aggregation,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    atom_variables,
    canonical,
    element_variables,
    is_auxiliary,
    substitute_rule,
)
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

OWL_SAME_AS = Constant(Kind.IRI, "http://www.w3.org/2002/07/owl#sameAs")
"""The predicate of equality in triples."""
SAME = "~same"
"""The predicate of equality in rules made by `without_equality`."""
CONSTANT = "~constant"
"""The predicate of all constants that occur in facts."""

APART = "~apart"
"""The prefix of relations for names that a rule must not read."""

_MOST_TWINS = 4
"""The most triples of a rule that may be equalities: each doubles its twins."""

_MOST_NAMES = 6
"""The most names that the built-ins of a rule may read: each doubles its cases."""


class EqualityError(EvermatError, ValueError):
    """A rule that has no sensible meaning together with equality."""

    code: ClassVar[str] = "EM305"


def _error(rule: Rule, message: str, reason: str, advice: str) -> EqualityError:
    labels = () if rule.span is None else (Label(rule.span),)
    # In the syntax of users, not in the internal form.
    heads = (
        replace(head, predicate=SAME_AS) if head.predicate == SAME else head
        for head in rule.heads
    )
    shown = replace(rule, heads=tuple(heads)) if rule.origin is None else rule.origin
    return EqualityError(
        f"{message}: {shown}", labels=labels, reason=reason, help=advice
    )


def another_name() -> EqualityError:
    """Return the error for an equality of `owl:sameAs` with another constant."""
    return EqualityError(
        "`owl:sameAs` would be equal to another name",
        reason="equality is part of the language, and cannot itself be replaced",
        help="derive equality from the other predicate by a rule: "
        "`[?x, owl:sameAs, ?y] :- [?x, :other, ?y] .`",
    )


def refuse_aggregates(rules: Iterable[Rule]) -> None:
    """Refuse aggregates, because one fact would hide members that differ in names."""
    for rule in rules:
        for element in rule.aggregations():
            raise EqualityError(
                f"`{element.function}{{…}}` together with equality by rewriting",
                labels=() if element.span is None else (Label(element.span),),
                reason="an aggregate counts facts, and rewriting holds one fact for "
                "all that differ in equal constants only",
                help='use `equality="off"`, under which equality is a predicate like '
                "others, or aggregate the answers of a query",
            )


def is_equality(atom: Atom) -> bool:
    """Return whether an atom states that two terms are equal."""
    if atom.predicate == SAME_AS:
        return atom.arity == 2  # noqa: PLR2004  the two that are equal
    return (
        atom.predicate == TRIPLE
        and atom.arity == 3  # noqa: PLR2004  subject, predicate, object
        and atom.arguments[1] == Term(OWL_SAME_AS)
    )


def mentions_equality(rules: Iterable[Rule]) -> bool:
    """Return whether rules derive equality, or use it in bodies."""
    return any(is_equality(atom) for rule in rules for atom in rule.atoms())


# ------------------------------------------------------------------ the axioms ≈1–≈4


def axioms(arities: Mapping[str, int]) -> tuple[Rule, ...]:
    """Return the rules that make equality a congruence over some predicates (≈1–≈4)."""
    rules: list[Rule] = []
    x, y = Variable("x"), Variable("y")
    if TRIPLE in arities:
        triple = Atom(TRIPLE, (x, Term(OWL_SAME_AS), y))
        same = Atom(SAME_AS, (x, y))
        rules += [Rule((same,), (triple,)), Rule((triple,), (same,))]
    for predicate, arity in arities.items():
        names = tuple(Variable(f"x{at}") for at in range(arity))
        atom = Atom(predicate, names)
        for at, name in enumerate(names):
            other = (*names[:at], y, *names[at + 1 :])
            same = Atom(SAME_AS, (name, y))
            rules.append(Rule((Atom(predicate, other),), (atom, same)))
            rules.append(Rule((Atom(SAME_AS, (name, name)),), (atom,)))
    return tuple(rules)


# ------------------------------------------------------- rules without equality


def bridges(arities: Mapping[str, int]) -> tuple[Rule, ...]:
    """Return rules that derive equality from facts."""
    x, y = Variable("x"), Variable("y")
    same = Atom(SAME, (x, y))
    sources = []
    if arities.get(SAME_AS) == 2:  # noqa: PLR2004  the two that are equal
        sources.append(Atom(SAME_AS, (x, y)))
    if TRIPLE in arities:
        sources.append(Atom(TRIPLE, (x, Term(OWL_SAME_AS), y)))
    return tuple(Rule((same,), (source,)) for source in sources)


def constants_of(arities: Mapping[str, int]) -> tuple[Rule, ...]:
    """Return rules that define `~constant`."""
    rules = []
    # With triples, the equality of a constant with itself is a triple as well.
    known = (Term(OWL_SAME_AS),) if TRIPLE in arities else ()
    for predicate, arity in arities.items():
        if arity and not is_auxiliary(predicate):
            names = tuple(Variable(f"x{at}") for at in range(arity))
            rules += [
                Rule((Atom(CONSTANT, (name,)),), (Atom(predicate, names),))
                for name in (*names, *known)
            ]
    return tuple(rules)


def without_equality(
    rules: Iterable[Rule], arities: Mapping[str, int], values: frozenset[Kind]
) -> tuple[Rule, ...]:
    """Return normal rules with equality in heads only, as `~same`.

    Args:
        rules: normal rules.
        arities: the predicates that are visible to users.
        values: the kinds of constants that are never equal to each other.

    Raises:
        EqualityError: a rule whose meaning would change.
    """
    own = {rule: tuple(without_equality_in((rule,))) for rule in rules}
    reading = [
        rule for rule in own if names_read(rule, values) or names_made(rule, values)
    ]
    if reading:
        every = (*chain.from_iterable(own.values()), *bridges(arities))
        together = frozenset(rules_needed_for(every, SAME)[0])
        for rule in reading:
            if together.isdisjoint(own[rule]):
                own[rule] = tuple(_with_names(rule, values))
            else:
                watching = chain.from_iterable(
                    _watching(plain, values) for plain in own[rule]
                )
                own[rule] += tuple(watching)
    changed = dict.fromkeys(chain.from_iterable(own.values()))
    for added in (*bridges(arities), *definitions(changed)):
        changed.setdefault(added)
    if any(atom.predicate == CONSTANT for r in changed for atom in r.positive_atoms()):
        for rule in (*constants_of(arities), *_constants_of_heads(tuple(changed))):
            changed.setdefault(rule)
    return tuple(changed)


def _constants_of_heads(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield rules that define `~constant` for constants in equalities only."""
    for rule in rules:
        if rule.head.predicate == SAME:
            bound = {each for a in rule.positive_atoms() for each in a.arguments}
            first, second = rule.head.arguments
            if not any(isinstance(each, Variable) for each in {first, second} & bound):
                yield replace(rule, heads=(Atom(CONSTANT, (first,)),))


def without_equality_in(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the same, without the rules that define auxiliary predicates.

    Built-ins read representatives.
    """
    changed: dict[Rule, None] = {}
    for rule in rules:
        if _is_without_equality(rule):
            changed.setdefault(rule)
            continue
        for twin in _twins(as_written(_without_idle_condition(rule))):
            plain = _without_equality(twin)
            if plain is not None:
                changed.setdefault(plain)
    return tuple(changed)


def _is_without_equality(rule: Rule) -> bool:
    """Whether a rule has nothing but atoms, none of which can be an equality.

    So it is with most of the many rules of an ontology.
    """
    for atom in (rule.head, *rule.body):
        if not isinstance(atom, Atom) or atom.predicate == SAME_AS:
            return False
        if atom.predicate == TRIPLE:
            middle = atom.arguments[1] if atom.arity == TRIPLE_ARITY else None
            if not isinstance(middle, Term) or middle.constant == OWL_SAME_AS:
                return False
    return True


def _without_idle_condition(rule: Rule) -> Rule:
    """Drop `?x != ?y` from a rule that derives that `?x` and `?y` are equal.

    That a constant is equal to itself adds nothing.
    """
    if not is_equality(rule.head):
        return rule
    sides = frozenset(_sides(rule.head))
    body = tuple(
        element
        for element in rule.body
        if not (
            isinstance(element, Condition)
            and element.expression.function == "!="
            and frozenset(element.expression.arguments) == sides
        )
    )
    return rule if len(body) == len(rule.body) else replace(rule, body=body)


def _with_names(rule: Rule, values: frozenset[Kind]) -> Iterator[Rule]:
    """Yield the forms of a rule with built-ins, as in `lang.equality_builtins`."""
    named = with_names(rule, _few(rule, names_read(rule, values)), frozenset())
    for plain in without_equality_in(divided(named, values)):
        yield from cases(plain)


def _watching(rule: Rule, values: frozenset[Kind]) -> Iterator[Rule]:
    """Yield rules that find names which rules that equality depends on must not read.

    Built-ins of such a rule read representatives, so the constants that they read or
    compute must have no other names; `~apart…` holds for those that do.

    Raises:
        EqualityError: computed names would be equal to others.
    """
    made = names_made(rule, values)
    head = rule.head
    if head.predicate == SAME:
        if any(isinstance(e, Variable) and e.name in made for e in head.arguments):
            raise _error(
                rule,
                "a name that is computed would be equal to others",
                "what equality depends on must be known before, and other names could "
                "be computed from all that are equal",
                "derive equality from names that facts mention",
            )
        made = frozenset()
    predicate = f"{APART}({canonical(rule.written)})"
    for name in names_read(rule, values):
        variable = Variable(name)
        node = Atom(SAME, (variable, variable))
        atoms = _around(name, tuple(rule.positive_atoms()))
        yield Rule((Atom(predicate, (variable,)),), (node, *atoms), None, rule.written)
    for each in head.arguments:
        if isinstance(each, Variable) and each.name in made:
            computed = Atom(f"{COMPUTED}({each.name}: {canonical(rule)})", (each,))
            found = Atom(predicate, (each,))
            node, name_of = Atom(SAME, (each, each)), Atom(NAME, (Variable("~"), each))
            yield replace(rule, heads=(computed,))
            yield Rule((found,), (computed, node), None, rule.written)
            yield Rule((found,), (computed, name_of), None, rule.written)


def _around(name: str, atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """Return the atoms that share variables with a variable, directly or indirectly."""
    reached = {name}
    found: list[Atom] = []
    waiting = list(atoms)
    while True:
        near = [a for a in waiting if reached & {v.name for v in atom_variables(a)}]
        if not near:
            return tuple(found)
        found += near
        reached |= {v.name for atom in near for v in atom_variables(atom)}
        waiting = [atom for atom in waiting if atom not in near]


def answers_with_names(
    rules: Iterable[Rule], answer: str, values: frozenset[Kind], *, raw: bool
) -> tuple[tuple[Rule, ...], frozenset[int]]:
    """Return a query in the same form, and the columns of its answers that are names.

    All other columns are representatives, which represent all their names.

    Args:
        rules: normal rules.
        answer: the predicate of the answers, the head of one rule.
        values: the kinds of constants that are never equal to each other.
        raw: return representatives in all columns.
    """
    changed: dict[Rule, None] = {}
    exact: frozenset[int] = frozenset()
    for rule in rules:
        shown: frozenset[str] = frozenset()
        read = names_read(rule, values)
        if rule.head.predicate == answer and not raw:
            terms = rule.head.arguments
            twice = {term for term in terms if terms.count(term) > 1}
            read += tuple(t.name for t in twice if isinstance(t, Variable))
            read = tuple(dict.fromkeys(read))
            shown = frozenset(read)
            alone = {*shown, *_in_built_ins(rule)}
            exact = frozenset(
                at
                for at, term in enumerate(terms)
                if not isinstance(term, Variable) or term.name in alone
            )
            rule = _with_written_head(rule)  # noqa: PLW2901
        named = with_names(rule, _few(rule, read), shown)
        is_answer = rule.head.predicate == answer
        for plain in without_equality_in(divided(named, values, is_answer=is_answer)):
            changed.update(dict.fromkeys(cases(plain)))
    for added in definitions(changed):
        changed.setdefault(added)
    return tuple(changed), exact


def _in_built_ins(rule: Rule) -> Iterator[str]:
    for element in rule.body:
        if isinstance(element, Condition | Assignment):
            yield from (each.name for each in element_variables(element))


def _with_written_head(rule: Rule) -> Rule:
    """Protect the constants in the head of a rule from being replaced."""
    (head,) = rule.heads
    arguments = tuple(
        Written(each.constant, each.span) if isinstance(each, Term) else each
        for each in head.arguments
    )
    return replace(rule, heads=(replace(head, arguments=arguments),))


def _few(rule: Rule, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, unless there are too many.

    Raises:
        EqualityError: the rule would have too many cases.
    """
    if len(names) > _MOST_NAMES:
        raise _error(
            rule,
            f"built-ins read {len(names)} names in one rule",
            f"of each of them, up to {_MOST_NAMES}, there may be several that are "
            "equal",
            "divide the rule into several, or use `equality='off'`",
        )
    return names


def _twins(rule: Rule) -> Iterator[Rule]:
    """Yield a rule, and its cases in which triples of any predicate are equalities."""
    negated = {_open_predicate(atom) for atom in rule.negated_atoms()}
    found = (*map(_open_predicate, rule.positive_atoms()), *negated)
    choices = [each for each in dict.fromkeys(found) if each is not None]
    if len(choices) > _MOST_TWINS:
        raise _error(
            rule,
            f"more than {_MOST_TWINS} predicates of triples are variables",
            "each of them may stand for equality",
            "name some of the predicates, or use `equality='off'`",
        )
    for chosen in product((False, True), repeat=len(choices)):
        values: dict[str, Expression] = {}
        others: list[Condition] = []
        for variable, is_chosen in zip(choices, chosen, strict=True):
            if is_chosen:
                values[variable.name] = Term(OWL_SAME_AS)
            elif variable in negated:
                others.append(Condition(Call("!=", (variable, Term(OWL_SAME_AS)))))
        twin = substitute_rule(rule, values) if values else rule
        yield replace(twin, body=(*twin.body, *others)) if others else twin


def _open_predicate(atom: Atom) -> Variable | None:
    if atom.predicate == TRIPLE and atom.arity == 3:  # noqa: PLR2004
        middle = atom.arguments[1]
        return middle if isinstance(middle, Variable) else None
    return None


def _sides(atom: Atom) -> tuple[Expression, Expression]:
    return atom.arguments[0], atom.arguments[-1]


def _without_equality(rule: Rule) -> Rule | None:
    """Return the rule in the new form; None if it cannot have instances."""
    terms: list[Expression] = []
    while True:
        found = next((a for a in rule.positive_atoms() if is_equality(a)), None)
        if found is None:
            break
        rule, kept, others = _drop(rule, found)
        terms = [others.get(t.name, t) if isinstance(t, Variable) else t for t in terms]
        terms.append(kept)
    body: list[BodyElement] = []
    for element in rule.body:
        if isinstance(element, Negation) and is_equality(element.atom):
            left, right = _sides(element.atom)
            if left == right:
                return None
            body.append(Condition(Call("!=", (left, right))))
        else:
            body.append(element)
    bound = {term for atom in binding_atoms(rule) for term in atom.arguments}
    unbound = [t for t in dict.fromkeys(terms) if t not in bound]
    known: list[BodyElement] = [Atom(CONSTANT, (term,)) for term in unbound]
    head = rule.head
    if is_equality(head):
        head = replace(head, predicate=SAME, arguments=_sides(head))
    return Rule((head,), (*known, *_ordered(body)), rule.span, rule.written)


def _ordered(body: Sequence[BodyElement]) -> Iterator[BodyElement]:
    """Yield computations before negations, as in normal rules."""
    yield from (each for each in body if not isinstance(each, Negation))
    yield from (each for each in body if isinstance(each, Negation))


def _drop(rule: Rule, atom: Atom) -> tuple[Rule, Expression, Mapping[str, Expression]]:
    """Remove an equality from a body by substituting one side for the other."""
    left, right = _sides(atom)
    rest = tuple(element for element in rule.body if element is not atom)
    rule = replace(rule, body=rest)
    if left == right:
        return rule, left, {}
    if isinstance(right, Variable):
        kept, values = left, {right.name: left}
    elif isinstance(left, Variable):
        kept, values = right, {left.name: right}
    else:
        same = Condition(Call("=", (left, right)))
        return replace(rule, body=(*rest, same)), left, {}
    return substitute_rule(rule, values), kept, values


# ---------------------------------------------- what equality itself may depend on


def require_monotone(rules: Iterable[Rule]) -> None:
    """Refuse rules in the component of equality whose derivations it may undo.

    Raises:
        EqualityError: a rule with negation, or with a built-in that reads all names.
    """
    for rule in rules:
        if reads_other_names(rule):
            raise _names_apart(rule)
        for atom in rule.negated_atoms():
            raise _error(
                rule,
                f"equality depends on `not {atom.predicate}`",
                "what is negated must be known before, but every fact depends on "
                "which constants are equal",
                "negate only in rules that equality does not depend on",
            )


def _names_apart(rule: Rule) -> EqualityError:
    return _error(
        rule,
        "equality depends on a built-in that tells names apart",
        "constants that differ now may turn out to be equal",
        "compare numbers only, or use the built-in in rules that equality does not "
        "depend on",
    )


def name_apart(rule: Rule, name: Constant) -> EqualityError:
    """Return the error for a built-in that equality depends on, and that read a name.

    Args:
        rule: the rule with the built-in.
        name: a constant with other names.
    """
    return _error(
        rule,
        f"equality depends on how {name} is written, which is equal to other names",
        "a built-in in a rule that equality depends on reads names before it is known "
        "which of them are equal",
        "have the built-in read what nothing is equal to, such as the e-mail address "
        "of a person",
    )


# ---------------------------------------------------------- constants in rules


def rule_constants(rules: Iterable[Rule]) -> tuple[Constant, ...]:
    """Return the constants of rules, each once."""
    found: dict[Constant, None] = {}
    for rule in rules:
        for expression in _expressions(rule):
            for constant in _constants(expression):
                found.setdefault(constant)
    return tuple(found)


def _expressions(rule: Rule) -> Iterator[Expression]:
    for atom in (*rule.heads, *rule.positive_atoms(), *rule.negated_atoms()):
        yield from atom.arguments
    for element in rule.body:
        if isinstance(element, Condition | Assignment):
            yield element.expression


def _constants(expression: Expression) -> Iterator[Constant]:
    match expression:
        case Written():
            return
        case Term(constant=constant):
            yield constant
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _constants(argument)
        case _:
            return


def replace_constants(  # noqa: C901  one case for each kind of element
    rule: Rule, values: Mapping[Constant, Constant]
) -> Rule:
    """Return the rule with some constants replaced by others."""
    if not any(c in values for e in _expressions(rule) for c in _constants(e)):
        return rule

    def new(expression: Expression) -> Expression:
        match expression:
            case Written():
                return expression
            case Term(constant=constant) if constant in values:
                return replace(expression, constant=values[constant])
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(new, arguments)))
            case _:
                return expression

    def atom(old: Atom) -> Atom:
        return replace(old, arguments=tuple(map(new, old.arguments)))

    def part(element: BodyElement) -> BodyElement:
        match element:
            case Atom():
                return atom(element)
            case Negation(atom=inner):
                return replace(element, atom=atom(inner))
            case Condition(expression=call):
                arguments = tuple(map(new, call.arguments))
                return replace(element, expression=replace(call, arguments=arguments))
            case Assignment(expression=value):
                return replace(element, expression=new(value))
            case Aggregation():
                return element  # refused before any constant is replaced

    heads = tuple(map(atom, rule.heads))
    return replace(rule, heads=heads, body=tuple(map(part, rule.body)))
