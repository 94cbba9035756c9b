"""Static checks of a program.

`check_program` finds all problems at once: unsafe rules, clashing arities, unknown
functions, type errors, recursion through negation. It also warns of parts that are
allowed but probably not intended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from evermat.errors import (
    ArgumentCountError,
    ArityError,
    BodyLengthError,
    DeclarationError,
    Label,
    ProgramError,
    ProgramWarning,
    StratificationError,
    UnknownFunctionError,
    UnsafeRuleError,
    raise_all,
)
from evermat.errors.wording import counted, did_you_mean
from evermat.functions import FUNCTIONS
from evermat.functions.python import MissingFunctionError
from evermat.lang.aggregates import (
    MOST_EMPTY,
    Value,
    members_rule,
    names_outside,
)
from evermat.lang.lint import remarks
from evermat.lang.normalise import normalise
from evermat.lang.reader import FOREIGN_AGGREGATES, FOREIGN_FUNCTIONS
from evermat.lang.strata import stratify
from evermat.lang.syntax import (
    ANONYMOUS,
    Aggregation,
    Assignment,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Variable,
    aggregated_variables,
    atom_variables,
    bound_by,
    element_variables,
    expression_variables,
)
from evermat.lang.types import TypeCheck
from evermat.runtime import collection_paused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from evermat.errors import EvermatError, Span
    from evermat.functions import Function
    from evermat.lang.syntax import Declaration


# ------------------------------------------------------------------------------- safety
#
# A variable is *bound* by a positive body atom that has it as an argument, or by an
# equation `?z = expression` whose other side is bound. Variables of heads and of
# expressions must be bound. A variable that occurs in one negated atom only need not
# be: `not p(?x, ?y)` then means that there is no such `?y`.


_LAW = "every variable must occur in a positive body atom"


def unsafe_variables(rule: Rule) -> Iterator[UnsafeRuleError]:
    """Yield an error for each variable of a rule that is not bound but must be."""
    bound = bound_by(rule.body)
    reported: set[str] = set()
    for variable, need in _needed_variables(rule):
        name = variable.name
        if name == ANONYMOUS:
            yield _anonymous(variable, need)
        elif name not in bound and name not in reported:
            reported.add(name)
            yield _unbound(rule, variable, need)


def unsafe_fact(fact: Atom) -> UnsafeRuleError | None:
    """Return an error if a fact contains a variable."""
    variable = next(atom_variables(fact), None)
    if variable is None:
        return None
    shown = _shown(variable)
    return UnsafeRuleError(
        f"the fact has a variable, `{shown}`",
        labels=_labels((variable.span, "needs a value here")),
        reason="facts have constants only",
        help=f"write a constant, or a rule with a body that gives `{shown}` a value"
        if variable.name != ANONYMOUS
        else "write a constant",
    )


def unsafe_inside(rule: Rule) -> Iterator[ProgramError]:
    """Yield an error for each variable of an aggregate not bound by its own body."""
    outside = names_outside(rule)
    for element in rule.aggregations():
        inner = members_rule(rule, element, outside)
        found = [*unsafe_variables(inner), *unsafe_inside(inner)]
        places = {f"`?{v.name}`": v.span for v in aggregated_variables(element)}
        for problem in found:
            problem.message = problem.message.replace("head variable", "variable")
            shown = problem.message.removeprefix("variable ").partition(" ")[0]
            if not problem.labels:
                problem.labels = _labels((places.get(shown), "needs a value here"))
            problem.help = "bind it behind the colon, as in `sum{ ?q : needs(_, ?q) }`"
        yield from found
    empty = {
        value.group_key
        for number, element in enumerate(rule.aggregations())
        if (value := Value(rule, element, outside, number)).may_be_empty
    }
    if len(empty) > MOST_EMPTY:
        yield BodyLengthError(
            f"a rule has counts or sums over {len(empty)} different groups",
            labels=() if rule.span is None else (Label(rule.span),),
            reason=f"{MOST_EMPTY} are the most, as each of them may be empty or not",
            help="divide the rule: give some of the counts and sums one of their own",
        )


def _needed_variables(rule: Rule) -> Iterator[tuple[Variable, str]]:
    """Yield the variables that must be bound, with descriptions of their places."""
    for head in rule.heads:
        for variable in atom_variables(head):
            yield variable, "head variable"
    for element in rule.body:
        match element:
            case Atom():
                yield from _in_calls(element.arguments)
            case Negation(atom=atom):
                yield from _in_calls(atom.arguments)
            case Aggregation():
                pass  # its variables are checked by `unsafe_inside`
            case _:
                for variable in element_variables(element):
                    yield variable, "variable"
    yield from _shared_by_negations(rule)


def _in_calls(arguments: Iterable[Expression]) -> Iterator[tuple[Variable, str]]:
    for argument in arguments:
        if isinstance(argument, Call):
            for variable in expression_variables(argument):
                yield variable, "variable"


def _shared_by_negations(rule: Rule) -> Iterator[tuple[Variable, str]]:
    negations = [set(_names(atom)) for atom in rule.negated_atoms()]
    seen: set[str] = set()
    for atom, names in zip(rule.negated_atoms(), negations, strict=True):
        for variable in atom_variables(atom):
            if variable.name in seen and variable.name != ANONYMOUS:
                yield variable, "variable"
        seen |= names


def _names(atom: Atom) -> Iterator[str]:
    return (variable.name for variable in atom_variables(atom))


def _unbound(rule: Rule, variable: Variable, need: str) -> UnsafeRuleError:
    places: list[tuple[Span | None, str]] = [(variable.span, "needs a value here")]
    places += [
        (other.span, "a negated atom cannot give it one")
        for atom in rule.negated_atoms()
        for other in atom_variables(atom)
        if other.name == variable.name and other.span != variable.span
    ]
    places += [
        (other.span, "an expression cannot give it one")
        for atom in rule.positive_atoms()
        for other in atom_variables(atom)
        if other.name == variable.name and other.span != variable.span
    ]
    return UnsafeRuleError(
        f"{need} `?{variable.name}` is not bound by the body",
        labels=_labels(*places),
        reason=_LAW,
        help=f"add a positive atom that mentions `?{variable.name}`"
        + (f", or drop `?{variable.name}` from the head" if "head" in need else ""),
    )


def _anonymous(variable: Variable, need: str) -> UnsafeRuleError:
    where = "a head" if "head" in need else "an expression"
    return UnsafeRuleError(
        f"`_` cannot stand in {where}",
        labels=_labels((variable.span, "needs a value here")),
        reason="every `_` is a variable of its own, which nothing else can bind",
        help="give the variable a name",
    )


def _shown(variable: Variable) -> str:
    return ANONYMOUS if variable.name == ANONYMOUS else f"?{variable.name}"


def _labels(*places: tuple[Span | None, str]) -> tuple[Label, ...]:
    return tuple(Label(span, text) for span, text in places if span is not None)


MOST_ATOMS = 300
"""The most atoms of a body; a condition counts half. Parts of a body are nested when
they run, and Python limits the depth of calls to a thousand."""

Problem = TypeVar("Problem", bound="EvermatError")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The errors and warnings about a program, in order of the text."""

    errors: tuple[ProgramError, ...]
    warnings: tuple[ProgramWarning, ...]

    @property
    def is_fine(self) -> bool:
        """Whether the program can be run."""
        return not self.errors


@collection_paused()
def check_program(
    program: Program, *, known: Collection[str] | None = None
) -> CheckReport:
    """Find all problems of a program.

    Args:
        program: the program, parsed or constructed.
        known: the predicates that will have data. If it is None, a predicate without
            rules and facts counts as undefined only if the program specifies its data
            sources, or if another name is very similar.
    """
    errors, warnings = _find_problems(program)
    warnings += remarks(program, known)
    return CheckReport(_in_order(errors), _in_order(warnings))


def require_valid(program: Program) -> None:
    """Raise an error unless a program is valid.

    Raises:
        ProgramError: the first problem; its text and its `problems` contain all.
    """
    errors = find_errors(program)
    if errors:
        raise_all([*errors])


def find_errors(program: Program) -> tuple[ProgramError, ...]:
    """Return all errors of a program, in order of the text; no warnings."""
    errors, _ = _find_problems(program)
    return _in_order(errors)


def _find_problems(
    program: Program,
) -> tuple[list[ProgramError], list[ProgramWarning]]:
    declarations = {each.predicate: each for each in program.declarations}
    types = TypeCheck(declarations)
    errors: list[ProgramError] = list(_arity_clashes(program))
    errors += _contradicting_declarations(program)
    warnings: list[ProgramWarning] = []
    sound: list[Rule] = []
    for rule in program.rules:
        found: list[ProgramError] = [*unsafe_variables(rule), *_misused_functions(rule)]
        if rule.has_aggregates:
            found += unsafe_inside(rule)
        found += _too_long(rule)
        if not rule.heads:
            found.append(ProgramError(f"a rule has no head: {rule}"))
        mismatches, doubts = types.rule(rule)
        if not found:
            sound.append(rule)
        errors += found
        errors += mismatches
        warnings += doubts
    for fact in program.facts:
        unsafe = unsafe_fact(fact)
        errors += [unsafe] if unsafe is not None else types.fact(fact)
        errors += _misused_in_atom(fact)
    errors += _recursion_through_negation(sound)
    return errors, warnings


def _too_long(rule: Rule) -> Iterator[BodyLengthError]:
    atoms = sum(isinstance(part, Atom) for part in rule.body)
    others = len(rule.body) - atoms
    if atoms + others // 2 > MOST_ATOMS:
        yield BodyLengthError(
            f"a body has {counted(atoms, 'atom')} and {counted(others, 'other part')}",
            labels=() if rule.span is None else (Label(rule.span),),
            reason=f"{MOST_ATOMS} atoms, or twice as many conditions, are the most",
            help="divide the rule, or put constants into facts and join with them",
        )


def _in_order(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=_place))


def _place(problem: EvermatError) -> tuple[str, int]:
    span = problem.span
    return ("", 0) if span is None else (span.source.name, span.start)


def _recursion_through_negation(rules: Sequence[Rule]) -> tuple[ProgramError, ...]:
    if not any(any(r.negated_atoms()) or r.has_aggregates for r in rules):
        return ()
    try:
        stratify(normalise(rules))
    except StratificationError as problem:
        return problem.problems
    return ()


# ---------------------------------------------------------------------- arities


def _contradicting_declarations(program: Program) -> Iterator[DeclarationError]:
    """Yield an error for each declaration that contradicts an earlier one."""
    first: dict[str, Declaration] = {}
    for each in program.declarations:
        known = first.setdefault(each.predicate, each)
        types = (known.column_types, each.column_types)
        if known.arity != each.arity or (all(types) and types[0] != types[1]):
            places = ((each.span, "here"), (known.span, "and here"))
            yield DeclarationError(
                f"`{each.predicate}` is declared in two ways",
                labels=tuple(Label(at, text) for at, text in places if at is not None),
                reason="a predicate has the same columns everywhere",
                help="leave one of the two out",
            )


def _arity_clashes(program: Program) -> Iterator[ArityError]:
    """Yield an error for each further arity of a predicate."""
    first: dict[str, tuple[int, Span | None]] = {
        each.predicate: (each.arity, each.span) for each in program.declarations
    }
    reported: set[tuple[str, int]] = set()
    for atom in _atoms(program):
        arity = len(atom.arguments)
        known = first.get(atom.predicate)
        if known is None:
            first[atom.predicate] = (arity, atom.span)
        elif known[0] != arity and (atom.predicate, arity) not in reported:
            reported.add((atom.predicate, arity))
            yield _arity_clash(atom.predicate, known, (arity, atom.span))


def _arity_clash(
    name: str, first: tuple[int, Span | None], second: tuple[int, Span | None]
) -> ArityError:
    # Rules are checked before facts, but a message points to the later place in a text.
    if first[1] and second[1] and first[1].start > second[1].start:
        first, second = second, first
    here, there = _arguments(second[0]), _arguments(first[0])
    places = ((second[1], here), (first[1], there))
    return ArityError(
        f"`{name}` has {here} here, but {there} elsewhere",
        labels=tuple(Label(at, text) for at, text in places if at is not None),
        reason="a predicate has the same number of arguments everywhere",
        help="add or remove arguments, or use another name",
    )


def _arguments(count: int) -> str:
    if count == 0:
        return "no arguments"
    return "1 argument" if count == 1 else f"{count} arguments"


def _atoms(program: Program) -> Iterator[Atom]:
    for rule in program.rules:
        yield from rule.atoms()
    yield from program.facts


# -------------------------------------------------------------------- functions


def _misused_functions(rule: Rule) -> Iterator[ProgramError]:
    for head in rule.heads:
        yield from _misused_in_atom(head)
    for element in rule.body:
        match element:
            case Atom():
                yield from _misused_in_atom(element)
            case Negation(atom=atom):
                yield from _misused_in_atom(atom)
            case Condition(expression=expression) | Assignment(expression=expression):
                yield from _misused_in(expression)
            case Aggregation(values=values, body=body):
                for value in values:
                    yield from _misused_in(value)
                yield from _misused_functions(Rule((), body))


def _misused_in_atom(atom: Atom) -> Iterator[ProgramError]:
    for argument in atom.arguments:
        if isinstance(argument, Call):
            yield from _misused_in(argument)


def _misused_in(expression: Expression) -> Iterator[ProgramError]:
    if not isinstance(expression, Call):
        return
    labels = () if expression.span is None else (Label(expression.span),)
    function = FUNCTIONS.get(expression.function)
    count = len(expression.arguments)
    if function is None:
        yield _unknown_function(expression.function, labels)
    elif not function.takes(count):
        name = function.name
        yield ArgumentCountError(
            f"`{name}` takes {_arity_text(function)}, not {count}",
            labels=labels,
            reason="a function sees the values of one row; aggregates are in braces"
            if name in FOREIGN_AGGREGATES
            else None,
            help=f"the {'least' if name == 'min' else 'greatest'} value of several "
            f"rows is `?m = {name}{{ ?n : cost(?x, ?n) }}`"
            if name in FOREIGN_AGGREGATES
            else None,
        )
    for argument in expression.arguments:
        yield from _misused_in(argument)


def require_functions(rules: Iterable[Rule]) -> None:
    """Refuse rules that call functions in Python which are not registered.

    Raises:
        MissingFunctionError: with the names of the functions.
    """
    missing = {
        name
        for rule in rules
        for name in called_functions(rule)
        if name not in FUNCTIONS
    }
    if missing:
        raise MissingFunctionError(missing)


def called_functions(rule: Rule) -> Iterator[str]:
    """Yield the functions that a rule calls, with repetitions."""
    for head in rule.heads:
        yield from _called_by(head.arguments)
    for element in rule.body:
        match element:
            case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
                yield from _called_by(arguments)
            case Condition(expression=expression) | Assignment(expression=expression):
                yield from _called_by((expression,))
            case Aggregation(values=values, body=body):
                yield from _called_by(values)
                yield from called_functions(Rule((), body))


def _called_by(expressions: Iterable[Expression]) -> Iterator[str]:
    for expression in expressions:
        if isinstance(expression, Call):
            yield expression.function
            yield from _called_by(expression.arguments)


def _unknown_function(name: str, labels: tuple[Label, ...]) -> UnknownFunctionError:
    message = f"there is no function `{name}`"
    word = name.lower()
    if word in FOREIGN_AGGREGATES:
        return UnknownFunctionError(
            message,
            labels=labels,
            reason="a function sees the values of one row; aggregates are in braces",
            help=f"as in `?n = {FOREIGN_AGGREGATES[word]}{{ ?y : knows(?x, ?y) }}`",
        )
    names = sorted(name for name in FUNCTIONS if name.isidentifier())
    same = FOREIGN_FUNCTIONS.get(word, word)
    question = f"did you mean `{same}`?" if same in FUNCTIONS else None
    return UnknownFunctionError(
        message,
        labels=labels,
        help=question
        or did_you_mean(word, names)
        or f"the functions are {', '.join(f'`{name}`' for name in names)}",
    )


def _arity_text(function: Function) -> str:
    least, most = function.minimum_arity, function.maximum_arity
    if most is None:
        return f"at least {_arguments(least)}"
    if least == most:
        return _arguments(least)
    return (
        f"{least} or {_arguments(most)}"
        if most == least + 1
        else (f"{least} to {_arguments(most)}")
    )
