"""All that can be said about a program before it is run.

`check_program` finds every problem at once: unsafe rules, clashing arities, unknown
functions, types that do not fit, recursion through negation; and warns of what is
allowed but hardly meant.
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
    raise_all,
)
from evermat.functions import FUNCTIONS
from evermat.lang import other_notations
from evermat.lang.normalise import normalise
from evermat.lang.remarks import remarks
from evermat.lang.safety import unsafe_fact, unsafe_variables
from evermat.lang.strata import stratify
from evermat.lang.suggestions import did_you_mean
from evermat.lang.syntax import (
    Assignment,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
)
from evermat.lang.type_checks import TypeCheck
from evermat.runtime.garbage import collection_paused
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from evermat.errors import EvermatError, Span
    from evermat.functions import Function
    from evermat.lang.syntax import Declaration

MOST_ATOMS = 300
"""A body has no more, two conditions counting as one: its parts are run inside each
other, and Python allows a thousand calls to be under way."""

Problem = TypeVar("Problem", bound="EvermatError")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What is wrong with a program, and what is odd about it, in order of the text."""

    errors: tuple[ProgramError, ...]
    warnings: tuple[ProgramWarning, ...]

    @property
    def is_fine(self) -> bool:
        """Whether the program can be run."""
        return not self.errors


def check_program(
    program: Program, *, known: Collection[str] | None = None
) -> CheckReport:
    """Find all problems of a program.

    Args:
        program: as parsed or built.
        known: the predicates that will have data. Where it is not given, a predicate
            without rules and facts counts as undefined only if the program says where
            its data comes from, or if another name is very close.
    """
    errors, warnings = _find_problems(program)
    warnings += remarks(program, known)
    return CheckReport(_in_order(errors), _in_order(warnings))


def require_valid(program: Program) -> None:
    """Raise what is wrong with a program, if anything is.

    Raises:
        ProgramError: the first problem; its text and its `problems` have them all.
    """
    raise_all(list(find_errors(program)))


def find_errors(program: Program) -> tuple[ProgramError, ...]:
    """All that is wrong with a program, in order of the text; no warnings."""
    errors, _ = _find_problems(program)
    return _in_order(errors)


@collection_paused()
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
            law=f"{MOST_ATOMS} atoms, or twice as many conditions, are the most",
            help="divide the rule, or put constants into facts and join with them",
        )


def _in_order(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=_place))


def _place(problem: EvermatError) -> tuple[str, int]:
    span = problem.span
    return ("", 0) if span is None else (span.source.name, span.start)


def _recursion_through_negation(rules: Sequence[Rule]) -> tuple[ProgramError, ...]:
    if not any(any(rule.negated_atoms()) for rule in rules):
        return ()
    try:
        stratify(normalise(rules))
    except StratificationError as problem:
        return problem.problems
    return ()


# ---------------------------------------------------------------------- arities


def _contradicting_declarations(program: Program) -> Iterator[DeclarationError]:
    """An error for each declaration that says something else than an earlier one."""
    first: dict[str, Declaration] = {}
    for each in program.declarations:
        known = first.setdefault(each.predicate, each)
        types = (known.column_types, each.column_types)
        if known.arity != each.arity or (all(types) and types[0] != types[1]):
            places = ((each.span, "here"), (known.span, "and here"))
            yield DeclarationError(
                f"`{each.predicate}` is declared in two ways",
                labels=tuple(Label(at, text) for at, text in places if at is not None),
                law="a predicate has the same columns everywhere",
                help="leave one of the two out",
            )


def _arity_clashes(program: Program) -> Iterator[ArityError]:
    """An error for each further arity of a predicate."""
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
    # Rules are looked at before facts; a message points at what comes later in a text.
    if first[1] and second[1] and first[1].start > second[1].start:
        first, second = second, first
    here, there = _arguments(second[0]), _arguments(first[0])
    places = ((second[1], here), (first[1], there))
    return ArityError(
        f"`{name}` has {here} here, but {there} elsewhere",
        labels=tuple(Label(at, text) for at, text in places if at is not None),
        law="a predicate has the same number of arguments everywhere",
        help="add or remove arguments, or use another name",
    )


def _arguments(count: int) -> str:
    if count == 0:
        return "no arguments"
    return "1 argument" if count == 1 else f"{count} arguments"


def _atoms(program: Program) -> Iterator[Atom]:
    for rule in program.rules:
        yield from rule.heads
        for element in rule.body:
            if isinstance(element, Atom):
                yield element
            elif isinstance(element, Negation):
                yield element.atom
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
        yield ArgumentCountError(
            f"`{function.name}` takes {_arity_text(function)}, not {count}",
            labels=labels,
        )
    for argument in expression.arguments:
        yield from _misused_in(argument)


def _unknown_function(name: str, labels: tuple[Label, ...]) -> UnknownFunctionError:
    message = f"there is no function `{name}`"
    word = name.lower()
    if word in other_notations.AGGREGATES:
        return UnknownFunctionError(
            message,
            labels=labels,
            law="rules have no aggregates yet: a function sees the values of one row",
            help='work on the answers of a query instead: `len(kb.query("…"))` counts '
            'them, and `kb.query("…").to_pandas()` can be grouped and summed up',
        )
    names = sorted(name for name in FUNCTIONS if name.isidentifier())
    same = other_notations.FUNCTIONS.get(word, word)
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
