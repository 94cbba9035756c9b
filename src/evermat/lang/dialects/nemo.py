"""The plain part of the rule language of Nemo and Rulewerk (`.rls`).

Read: facts and rules with several heads, `~`, comparisons, arithmetic and functions;
`@prefix`, `@base`, `@import`, `@export`, `@output`, `@parameter`, `@declare`, and
Rulewerk's `@source`. Everything else is refused by name.

A head variable `!x` asks for an individual that need not be known; see
`evermat.lang.dialects.existentials`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.errors import ProgramError, Source, raise_all
from evermat.lang.dialects.evaluation import settled
from evermat.lang.dialects.existentials import MARK, with_skolem_terms
from evermat.lang.dialects.nemo_files import FileReader
from evermat.lang.dialects.scanner import END
from evermat.lang.syntax import (
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Variable,
    atom_variables,
)
from evermat.values import Constant, constant

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        heads = [self._head()]
        while tokens.accept(","):
            heads.append(self._head())
        if tokens.accept(":-", "<-"):
            body = self._body()
            tokens.expect(".", "or `,` after a part of a rule's body")
            rule = Rule(tuple(heads), tuple(body), span=tokens.span_since(first))
            self._rules.append(with_skolem_terms(rule))
        else:
            tokens.expect(".", "after a fact")
            if any(variable for head in heads for variable in atom_variables(head)):
                rule = Rule(tuple(heads), (), span=tokens.span_since(first))
                self._rules.append(with_skolem_terms(rule))
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
        return Variable(f"{MARK}{token.text[1:]}", span=self.tokens.span(token))

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
