"""The plain part of the rule language of Nemo and Rulewerk (`.rls`).

Read: facts and rules with several heads, `~`, comparisons, arithmetic and functions;
`@prefix`, `@base`, `@import`, `@export`, `@output`, `@parameter`, `@declare`, and
Rulewerk's `@source`. Everything else is refused by name.

A head variable `!x` asks for an individual that need not be known. It is read as a
blank node that depends on the variables shared by body and heads, the skolem chase:
the same facts over known individuals as Nemo's restricted chase gives, and a blank node
where Nemo may find that one is not needed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from evermat.errors import ProgramError, Source, raise_all
from evermat.lang.foreign.evaluation import settled
from evermat.lang.foreign.nemo_files import FileReader
from evermat.lang.foreign.scanner import END
from evermat.lang.syntax import (
    ANONYMOUS,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    atom_variables,
)
from evermat.values import Constant, Kind, constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.errors import Span
    from evermat.lang.lexer import Token

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_OPERATORS = _COMPARISONS | {"+", "-", "*", "/"}
_CONDITIONS = frozenset({"CONTAINS", "REGEX", "STRSTARTS", "STRENDS"})


def read_nemo(
    text: str,
    *,
    name: str = "<rules>",
    parameters: Mapping[str, object] | None = None,
) -> Program:
    """The program in a text for Nemo or Rulewerk.

    Args:
        text: the program.
        name: what messages call the text.
        parameters: values for `$name`; they win over those in the program.

    Raises:
        ParseError: the text is not in Nemo's syntax.
        UnsupportedSyntaxError: it uses more than the plain part.

    >>> print(read_nemo("p(a). q(?x) :- p(?x), ~r(?x).").rules[0])
    q(?x) :- p(?x), not r(?x) .
    """
    given = {key: constant(value) for key, value in (parameters or {}).items()}
    return _Reader(Source(name, text), given).program()


class _Reader(FileReader):
    """Reads statements; files and directives are read by the base class."""

    def __init__(self, source: Source, parameters: dict[str, Constant]) -> None:
        super().__init__(source, parameters)
        self._rules: list[Rule] = []
        self._facts: list[Atom] = []
        self._existentials: dict[str, Variable] = {}
        self._in_head = False

    def program(self) -> Program:
        """Read everything."""
        problems: list[ProgramError] = []
        while self.tokens.current.kind != END:
            try:
                self._statement()
            except ProgramError as problem:
                problems.append(problem)
                self.tokens.skip_behind(".")
        raise_all(problems)
        atoms = [*self._facts]
        for rule in self._rules:
            atoms += [*rule.heads, *rule.positive_atoms(), *rule.negated_atoms()]
        arities = {atom.predicate: atom.arity for atom in atoms}
        return Program(
            rules=tuple(self._rules),
            facts=tuple(self._facts),
            prefixes=tuple(self.namespace.prefixes.items()),
            base=self.namespace.base,
            declarations=tuple(self.declarations),
            sources=tuple(self.sources_with(arities)),
            sinks=tuple(self.sinks),
        )

    def _statement(self) -> None:
        tokens = self.tokens
        if tokens.current.text == "#[":
            self._attribute()
        if tokens.current.kind == "directive":
            self.directive()
            return
        first = tokens.current
        self._existentials = {}
        heads = [self._head()]
        while tokens.accept(","):
            heads.append(self._head())
        if tokens.accept(":-", "<-"):
            body = self._body()
            tokens.expect(".", "or `,` after a part of a rule's body")
            self._rules.append(self._rule(heads, body, tokens.span_since(first)))
        else:
            tokens.expect(".", "after a fact")
            if any(variable for head in heads for variable in atom_variables(head)):
                rule = self._rule(heads, [], tokens.span_since(first))
                self._rules.append(rule)
            else:
                self._facts += map(settled, heads)

    def _attribute(self) -> None:
        """`#[name("…")]` in front of a rule says nothing about its meaning."""
        tokens = self.tokens
        opening = tokens.advance()
        while not tokens.accept("]"):
            if tokens.current.kind == END:
                raise tokens.error("an attribute is not closed", opening)
            tokens.advance()

    # ------------------------------------------------------------------- rules

    def _head(self) -> Atom:
        if self.tokens.current.text == "~":
            construct = "negation in heads is"
            raise self.tokens.unsupported(construct, self.tokens.current)
        self._in_head = True
        try:
            return self.atom()
        finally:
            self._in_head = False

    def existential(self) -> Expression:
        if not self._in_head:
            return super().existential()
        token = self.tokens.advance()
        name = token.text[1:]
        variable = Variable(name, span=self.tokens.span(token))
        self._existentials.setdefault(name, variable)
        return variable

    def _body(self) -> list[BodyElement]:
        body = [self._element()]
        while self.tokens.accept(","):
            body.append(self._element())
        return body

    def _element(self) -> BodyElement:
        tokens = self.tokens
        first = tokens.current
        if tokens.accept("~"):
            atom = self.atom()
            return Negation(atom, span=tokens.span_since(first))
        if self._is_atom(first):
            before = tokens.position
            atom = self.atom()
            if tokens.current.text not in _OPERATORS:
                return atom
            tokens.position = before
        return self._condition(first)

    def _is_atom(self, token: Token) -> bool:
        is_name = token.kind in {"name", "prefixed", "iri"}
        is_call = is_name and self.tokens.following.text == "("
        return is_call and token.text not in _CONDITIONS

    def _condition(self, first: Token) -> Condition:
        tokens = self.tokens
        left = self.expression()
        if tokens.current.text not in _COMPARISONS:
            if isinstance(left, Call) and first.text in _CONDITIONS:
                return Condition(left, span=left.span)
            raise tokens.wrong("a comparison such as `=` or `<`")
        operator = tokens.advance().text
        right = self.expression()
        span = tokens.span_since(first)
        return Condition(Call(operator, (left, right), span=span), span=span)

    def _rule(self, heads: list[Atom], body: Sequence[BodyElement], span: Span) -> Rule:
        """The rule, with a skolem term for each existential variable."""
        if not self._existentials:
            return Rule(tuple(heads), tuple(body), span=span)
        frontier = _frontier(heads, set(self._existentials))
        invented = tuple(
            _invented(variable, frontier, heads, body)
            for variable in self._existentials.values()
        )
        return Rule(tuple(heads), (*body, *invented), span=span)


def _frontier(heads: list[Atom], existentials: set[str]) -> list[Variable]:
    """The universal variables of the heads, each once, in reading order."""
    names = dict.fromkeys(
        variable.name
        for head in heads
        for variable in atom_variables(head)
        if variable.name not in existentials and variable.name != ANONYMOUS
    )
    return [Variable(name) for name in names]


def _invented(
    variable: Variable,
    frontier: list[Variable],
    heads: list[Atom],
    body: Sequence[BodyElement],
) -> Condition:
    """`?x = skolem("x-…", …)`; the name tells the variables of all rules apart.

    It is made from the rule itself, so that it does not change when other rules are
    added in front of it.
    """
    rule = f"{tuple(heads)!r} {tuple(body)!r}"
    digest = hashlib.blake2b(rule.encode(), digest_size=4).hexdigest()
    name = Term(Constant(Kind.STRING, f"{variable.name}-{digest}"))
    call = Call("skolem", (name, *frontier))
    bound = Variable(variable.name)
    return Condition(Call("=", (bound, call)), span=variable.span)
