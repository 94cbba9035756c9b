"""Reads SPARQL-RL, a W3C draft: `RULE { … } WHERE { … }` over triples.

| SPARQL-RL                     | Evermat                                              |
| ----------------------------- | ---------------------------------------------------- |
| triple patterns, `a/b`, `^a`  | triple atoms                                         |
| `FILTER`                      | conditions; a rule for each alternative of `||`      |
| `SET(?v := e)`                | `?v = e`                                             |
| `NOT { … }`                   | negation, of an auxiliary predicate if necessary     |
| `DATA { … }`                  | facts                                                |
| a blank node in a head        | a `skolem` term of all variables of the body         |

`sparql_rl_conditions` translates expressions. Keywords of SPARQL are accepted in upper
and lower case.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.errors import Label, ProgramError, Source, UnsafeRuleError, raise_all
from evermat.lang.dialects.desugar import (
    AllOf,
    AnyOf,
    Formula,
    alternatives,
    count_alternatives,
)
from evermat.lang.dialects.scanner import END, Scanner, UnsupportedSyntaxError
from evermat.lang.dialects.sparql_expressions import ExpressionReader
from evermat.lang.dialects.sparql_rl_conditions import formula_of, value_of
from evermat.lang.lexer import (
    PREFIX_NAME,
    RDF,
    RDF_TYPE,
    EscapeError,
    Namespace,
    Token,
    negated,
    number,
    unescape,
)
from evermat.lang.strata import strong_components
from evermat.lang.syntax import (
    ANONYMOUS,
    TRIPLE,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    atom_variables,
    call,
    element_variables,
    expression_variables,
    rule_variables,
    substitute_atom,
    substitute_rule,
)
from evermat.values import (
    Constant,
    Kind,
    boolean_constant,
    language_string,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.errors import Span
    from evermat.lang.syntax import BodyElement

_TOKEN = re.compile(
    rf"""
    (?P<blank>[\s\ufeff]+)
  | (?P<comment>\#[^\n]*)
  | (?P<string>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''
      | "(?:[^"\\\n\r]|\\[^\n\r])*" | '(?:[^'\\\n\r]|\\[^\n\r])*')
  | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|\\[uU][0-9A-Fa-f]+)*>)
  | (?P<variable>[?$]\w+)
  | (?P<null>_:\w(?:[\w\-.]*[\w\-])?)
  | (?P<at>@[A-Za-z][\w\-]*)
  | (?P<double>(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)
  | (?P<decimal>[0-9]*\.[0-9]+)
  | (?P<integer>[0-9]+)
  | (?P<assign>:=)
  | (?P<prefixed>(?:{PREFIX_NAME})?:
      (?:[\w:%]|(?<!:)-|\\[_~.\-!$&'()*+,;=/?\#@%]|\.(?=[\w\-:%\\]))*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign><<|\^\^|&&|\|\||!=|<=|>=|[-+*/=<>!(){{}}\[\],.;|^?~])
    """,
    re.VERBOSE | re.DOTALL,
)
_STATEMENTS = frozenset({"RULE", "PREFIX", "BASE", "VERSION", "IMPORTS"})
_VERSIONS = frozenset({"1.1", "1.2", "1.2-basic"})
_MOST_ALTERNATIVES = 1000
_FIRST, _REST, _NIL = (
    Term(Constant(Kind.IRI, RDF + name)) for name in ("first", "rest", "nil")
)


def read_sparql_rl(text: str, *, name: str = "<rules>") -> Program:
    """Parse a text in SPARQL-RL.

    Raises:
        ParseError: the text is not in this language.
        UnsupportedSyntaxError: it uses a construct without an equivalent.
        UnsafeRuleError: a variable has no value where it is used, or has one already.

    >>> rule = "RULE { ?y <http://a/q> ?x } WHERE { ?x <http://a/p> ?y }"
    >>> print(read_sparql_rl(rule).rules[0])
    [?y, <http://a/q>, ?x] :- [?x, <http://a/p>, ?y] .
    """
    return _Reader(Source(name, text)).program()


@dataclass(slots=True)
class _Body:
    """A parsed body: its parts in order, and the variables with values."""

    parts: list[Formula] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    unbound: list[tuple[Variable, str]] = field(default_factory=list)
    has_assignment: bool = False


class _Reader(ExpressionReader):
    """Parses one program."""

    def __init__(self, source: Source) -> None:
        self._tokens = Scanner(source, _TOKEN, "SPARQL-RL")
        self._namespace = Namespace()
        self._rules: list[Rule] = []
        self._facts: list[Atom] = []
        self._once: list[Rule] = []
        self._base_atoms: list[Atom] = []
        self._triples: list[Atom] = []
        self._taken = {each[1:] for each in re.findall(r"[?$]\w+", source.text)}
        self._labels: dict[str, Variable] = {}
        self._is_data, self._is_body = False, True

    def program(self) -> Program:
        """Parse the whole text."""
        problems: list[ProgramError] = []
        while self._tokens.current.kind != END:
            try:
                self._statement()
            except ProgramError as problem:
                problems.append(problem)
                while not self._at(*_STATEMENTS) and self._tokens.current.kind != END:
                    self._tokens.advance()
        problems += self._problems_of_recursion() + self._problems_of_data()
        raise_all(problems)
        return Program(
            rules=tuple(self._rules),
            facts=tuple(self._facts),
            prefixes=tuple(self._namespace.prefixes.items()),
            base=self._namespace.base,
        )

    # -- statements

    def _statement(self) -> None:
        tokens = self._tokens
        first = tokens.current
        word = first.text.upper()
        if first.kind != "name" or word not in _STATEMENTS | {"DATA"}:
            raise tokens.wrong("`RULE`, `DATA`, `PREFIX`, `BASE` or `VERSION`")
        tokens.advance()
        match word:
            case "RULE":
                self._rule(first)
            case "DATA":
                self._facts += self._block(is_data=True)
            case "PREFIX":
                self._prefix()
            case "BASE":
                iri = self._iri(tokens.expect_kind("iri", "an IRI in `<…>`"))
                self._namespace.base = iri
            case "VERSION":
                version = tokens.expect_kind("string", 'a version such as `"1.2"`')
                if tokens.string(version) not in _VERSIONS:
                    raise tokens.unsupported(f"version {version.text} is", version)
            case _:
                hint = "read the imported rules as a program of their own"
                raise tokens.unsupported("`IMPORTS` is", first, hint=hint)

    def _prefix(self) -> None:
        tokens = self._tokens
        prefix = tokens.expect_kind("prefixed", "a prefix such as `ex:`")
        if not prefix.text.endswith(":"):
            raise tokens.error("a prefix ends with its colon", prefix)
        iri = self._iri(tokens.expect_kind("iri", "an IRI in `<…>`"))
        self._namespace.prefixes[prefix.text[:-1]] = iri

    def _rule(self, first: Token) -> None:
        tokens = self._tokens
        if tokens.current.kind in {"iri", "prefixed"}:
            self._iri(tokens.advance())  # the name of the rule is ignored
        self._labels = {}
        heads = self._block(is_data=False)
        new_nodes = self._labels
        if not self._accept_word("WHERE"):
            raise tokens.wrong("`WHERE` after the head of a rule")
        self._labels = {}
        body = _Body()
        is_base = self._accept_word("DATA")
        self._body(body, is_base=is_base, may_nest=True)
        for variable, place in body.unbound:
            if variable.name in body.bound:
                raise _unsafe(
                    f"`?{variable.name}` gets its value only behind this {place}",
                    variable.span,
                    f"write the {place} behind what gives `?{variable.name}` its value",
                )
        span = tokens.span_since(first)
        values = [Variable(each) for each in sorted(body.bound)]
        for made in new_nodes.values():
            digest = _digest(*map(str, (made.name, heads, body.parts)))
            term = call("skolem", f"{made.name}-{digest}", *values)
            body.parts.append(Condition(Call("=", (made, term))))
        rules = self._all_rules(tuple(heads), body.parts, span, first)
        if body.has_assignment or new_nodes:
            self._once += rules
        self._rules += rules

    def _all_rules(
        self, heads: tuple[Atom, ...], parts: Sequence[Formula], span: Span, at: Token
    ) -> list[Rule]:
        formula = AllOf(tuple(parts))
        if count_alternatives(formula) > _MOST_ALTERNATIVES:
            construct = f"a body with more than {_MOST_ALTERNATIVES} alternatives is"
            raise self._tokens.unsupported(construct, at)
        return [_unnamed(Rule(heads, body, span)) for body in alternatives(formula)]

    # -- bodies

    def _body(self, body: _Body, *, is_base: bool, may_nest: bool) -> None:
        tokens = self._tokens
        tokens.expect("{", "at the beginning of a body")
        while not tokens.accept("}"):
            first = tokens.current
            if self._accept_word("FILTER"):
                self._filter(body)
            elif may_nest and self._accept_word("NOT"):
                self._not(body, first)
            elif may_nest and self._accept_word("SET"):
                self._set(body)
            elif first.kind == "name" and first.text.lower() not in {"true", "false"}:
                raise tokens.unsupported(f"`{first.text}` is", first)
            elif first.text == "{":
                raise tokens.unsupported("a group within a body is", first)
            else:
                self._same_subject()
                body.parts += self._triples
                body.bound |= {v.name for t in self._triples for v in atom_variables(t)}
                if is_base:
                    self._base_atoms += self._triples
            tokens.accept(".")

    def _filter(self, body: _Body) -> None:
        first = self._tokens.current
        if first.text != "(" and first.kind != "name":
            raise self._tokens.wrong("`(` or a function after `FILTER`")
        expression = self._unary()
        self._require_values(body, expression, "`FILTER`")
        body.parts.append(formula_of(expression, truth=True))

    def _set(self, body: _Body) -> None:
        tokens = self._tokens
        tokens.expect("(", "after `SET`")
        target = self._variable(tokens.expect_kind("variable", "a variable"))
        tokens.expect(":=", "after the variable of `SET`")
        expression = self._expression()
        tokens.expect(")", "at the end of `SET`")
        self._require_values(body, expression, "`SET`")
        if target.name in body.bound:
            message = f"`?{target.name}` has a value already"
            raise _unsafe(message, target.span, "give the variable another name")
        guards: list[Formula] = []
        value = value_of(expression, guards)
        span = target.span
        body.parts += [*guards, Condition(Call("=", (target, value), span), span)]
        body.bound.add(target.name)
        body.has_assignment = True

    def _require_values(self, body: _Body, expression: Expression, place: str) -> None:
        for each in expression_variables(expression):
            if each.name not in body.bound:
                message = f"`?{each.name}` has no value at this {place}"
                advice = f"write it behind a triple pattern with `?{each.name}`"
                raise _unsafe(message, each.span, advice)

    def _not(self, body: _Body, first: Token) -> None:
        """Parse `NOT { … }`: new variables are local to the block."""
        labels, self._labels = self._labels, {}
        inner = _Body(bound=set(body.bound))
        is_base = self._accept_word("DATA")
        self._body(inner, is_base=is_base, may_nest=False)
        self._labels = labels
        span = self._tokens.span_since(first)
        found = [
            variable
            for element in _elements(AllOf(tuple(inner.parts)))
            for variable in element_variables(element)
        ]
        body.unbound += [(v, "`NOT`") for v in found if v.name not in body.bound]
        counts = Counter(v.name for v in found if v.name not in body.bound)
        if len(inner.parts) == 1 and max(counts.values(), default=1) == 1:
            (only,) = inner.parts
            if isinstance(only, Atom):
                unnamed: dict[str, Expression] = dict.fromkeys(
                    counts, Variable(ANONYMOUS)
                )
                atom = substitute_atom(only, unnamed)
                body.parts.append(Negation(atom, span=span))
                return
        shared = {v.name: Variable(v.name) for v in found if v.name in body.bound}
        name = f"matched_{_digest(str(inner.parts), *shared)}"
        head = Atom(name, tuple(shared.values()), span=span)
        if not _bound_by_atoms(inner.parts):
            raise self._tokens.unsupported("`NOT` without a triple pattern is", first)
        if not shared.keys() <= _bound_by_atoms(inner.parts):
            # Its filters read values from outside.
            inner.parts[:0] = [part for part in body.parts if isinstance(part, Atom)]
            if not shared.keys() <= _bound_by_atoms(inner.parts):
                hint = "compare with the variable of a triple pattern"
                construct = "a variable of `SET` in a `FILTER` inside of `NOT` is"
                raise self._tokens.unsupported(construct, first, hint=hint)
        for rule in self._all_rules((head,), inner.parts, span, first):
            if rule not in self._rules:
                self._rules.append(rule)
        body.parts.append(Negation(head, span=span))

    # -- triples

    def _block(self, *, is_data: bool) -> list[Atom]:
        """Parse the triples of a head, or of `DATA`."""
        tokens = self._tokens
        tokens.expect("{", "before triples")
        self._is_data, self._is_body = is_data, False
        self._labels = {}
        found: list[Atom] = []
        while not tokens.accept("}"):
            self._same_subject()
            found += self._triples
            if not tokens.accept(".") and tokens.current.text != "}":
                raise tokens.wrong("`.` or `}` after a triple")
        self._is_data, self._is_body = False, True
        return found

    def _same_subject(self) -> None:
        """Parse `subject property object ; …`; the triples are left in `_triples`."""
        self._triples = []
        opening = self._tokens.current.text
        subject = self._node()
        if opening != "[" or self._tokens.current.text not in {".", "}"}:
            self._properties(subject)

    def _properties(self, subject: Expression) -> None:
        tokens = self._tokens
        while True:
            path = self._path()
            while True:
                self._connect(subject, path, self._node())
                if not tokens.accept(","):
                    break
            if not tokens.accept(";"):
                return
            while tokens.accept(";"):
                pass
            if tokens.current.text in {".", "}", "]"}:
                return

    def _connect(
        self,
        subject: Expression,
        path: Sequence[tuple[Expression, bool]],
        value: Expression,
    ) -> None:
        """Add a triple for each step of the path; true means an inverse step."""
        for at, (relation, is_inverse) in enumerate(path):
            end = value if at == len(path) - 1 else self._fresh("step")
            ends = (end, relation, subject) if is_inverse else (subject, relation, end)
            self._triples.append(Atom(TRIPLE, ends, span=relation.span))
            subject = end

    def _path(self) -> list[tuple[Expression, bool]]:
        tokens = self._tokens
        steps = [self._step()]
        while tokens.current.text == "/":
            if not self._is_body:
                raise tokens.error("a path stands in a body only", tokens.current)
            tokens.advance()
            steps.append(self._step())
        if tokens.current.text in {"*", "+", "?", "|"}:
            sign = tokens.current
            hint = "write rules for it"
            raise tokens.unsupported(f"`{sign.text}` in a path is", sign, hint=hint)
        return steps

    def _step(self) -> tuple[Expression, bool]:
        tokens = self._tokens
        is_inverse = tokens.accept("^") is not None
        token = tokens.advance()
        span = tokens.span(token)
        match token.kind:
            case "iri" | "prefixed":
                return Term(Constant(Kind.IRI, self._iri(token)), span), is_inverse
            case "name" if token.text == "a":
                return Term(RDF_TYPE, span), is_inverse
            case "variable" if not is_inverse:
                return self._variable(token), is_inverse
        tokens.position -= token.kind != END
        if token.text in {"(", "!"}:
            raise tokens.unsupported(f"`{token.text}` in a path is", token)
        raise tokens.wrong("a property")

    def _node(self) -> Expression:
        tokens = self._tokens
        token = tokens.current
        match token.text:
            case "[":
                with tokens.nested(tokens.advance()):
                    node = self._blank(f" {token.start}", token)
                    if tokens.current.text != "]":
                        self._properties(node)
                tokens.expect("]", "at the end of a blank node")
                return node
            case "(":
                with tokens.nested(tokens.advance()):
                    return self._collection(token)
            case "<<":
                raise tokens.unsupported("a triple term is", token)
        if token.kind == "variable":
            return self._variable(tokens.advance())
        if token.kind == "null":
            return self._blank(tokens.advance().text[2:], token)
        return self._constant()

    def _collection(self, opening: Token) -> Expression:
        members = []
        while not self._tokens.accept(")"):
            members.append(self._node())
        nodes = [
            self._blank(f" {opening.start}.{at}", opening) for at in range(len(members))
        ]
        for node, member, rest in zip(nodes, members, [*nodes[1:], _NIL], strict=False):
            self._connect(node, [(_FIRST, False)], member)
            self._connect(node, [(_REST, False)], rest)
        return nodes[0] if nodes else _NIL

    def _blank(self, label: str, token: Token) -> Expression:
        """Return a blank node: itself in data, and otherwise a variable."""
        span = self._tokens.span(token)
        if self._is_data:
            name = label if label[0] != " " else f"b{len(self._facts)}_{label[1:]}"
            return Term(Constant(Kind.BLANK, name), span)
        if label not in self._labels:
            self._labels[label] = self._fresh("node")
        return self._labels[label]

    def _fresh(self, name: str) -> Variable:
        count = 1
        while f"{name}{count}" in self._taken:
            count += 1
        self._taken.add(f"{name}{count}")
        return Variable(f"{name}{count}")

    def _variable(self, token: Token) -> Variable:
        if self._is_data:
            raise self._tokens.error("`DATA` has no variables", token)
        name = token.text[1:]
        return Variable("__" if name == ANONYMOUS else name, self._tokens.span(token))

    def _constant(self) -> Term:
        tokens = self._tokens
        first = tokens.current
        is_negative = tokens.accept("-", "+") is not None and first.text == "-"
        token = tokens.advance()
        if token.kind in {"integer", "decimal", "double"}:
            constant = number(token)
            constant = negated(constant) if is_negative else constant
        elif tokens.previous is not first:
            tokens.position -= 1
            raise tokens.wrong("a number")
        elif token.kind == "string":
            constant = self._literal(token)
        elif token.kind in {"iri", "prefixed"}:
            constant = Constant(Kind.IRI, self._iri(token))
        elif token.text.lower() in {"true", "false"}:
            constant = boolean_constant(value=token.text.lower() == "true")
        else:
            tokens.position -= token.kind != END
            raise tokens.wrong("a variable or a term of RDF")
        return Term(constant, tokens.span_since(first))

    def _literal(self, token: Token) -> Constant:
        tokens = self._tokens
        text = tokens.string(token)
        tag = tokens.accept_kind("at")
        if tag is not None:
            return language_string(text, tag.text[1:])
        if not tokens.accept("^^"):
            return Constant(Kind.STRING, text)
        if tokens.current.kind not in {"iri", "prefixed"}:
            raise tokens.wrong("a datatype")
        return literal(text, self._iri(tokens.advance()))

    def _iri(self, token: Token) -> str:
        if token.kind == "iri":
            try:
                return self._namespace.resolve(unescape(token.text[1:-1], 1))
            except EscapeError as problem:
                message = f"there is no escape `{problem.escape}`"
                raise self._tokens.error(message, token) from None
        iri = self._namespace.expand(re.sub(r"\\(.)", r"\1", token.text))
        if iri is None:
            raise self._tokens.unknown_prefix(token, "PREFIX {}: <http://example.org/>")
        return iri

    # -- what concerns all rules

    def _problems_of_recursion(self) -> list[ProgramError]:
        """Report rules that create values and depend on themselves: they run once."""
        if not self._once:
            return []
        heads = _Heads(self._rules)
        edges = [
            sorted(
                {
                    at
                    for atom in rule.atoms()
                    if atom not in rule.heads
                    for at in heads.matching(atom)
                }
            )
            for rule in self._rules
        ]
        component = strong_components(edges)
        sizes = Counter(component)
        once = {id(rule) for rule in self._once}
        found = {
            rule.span: None
            for at, rule in enumerate(self._rules)
            if id(rule) in once and (sizes[component[at]] > 1 or at in edges[at])
        }
        return [
            ProgramError(
                "a rule that makes new values depends on itself",
                labels=() if span is None else (Label(span),),
                reason="a rule with `SET`, or with blank nodes in its head, runs once",
                help="give its head a property that its body does not need",
            )
            for span in found
        ]

    def _problems_of_data(self) -> list[ProgramError]:
        """Report `DATA` in a body about triples that rules or data blocks create."""
        given = [Rule((atom,), ()) for atom in self._facts]
        heads = _Heads([*self._rules, *given])
        return [
            UnsupportedSyntaxError(
                "`DATA` is not supported for triples that rules or data blocks make",
                labels=() if atom.span is None else (Label(atom.span),),
                reason="rules do not tell given triples from derived ones",
                help="give what is derived another property",
            )
            for atom in self._base_atoms
            if any(heads.matching(atom))
        ]


# -------------------------------------------------------------------------- small parts


class _Heads:
    """An index of rules by the triples that they derive."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._by_property: dict[object, list[tuple[Atom, int]]] = defaultdict(list)
        for at, rule in enumerate(rules):
            for head in rule.heads:
                self._by_property[_property(head)].append((head, at))

    def matching(self, atom: Atom) -> Iterator[int]:
        """Yield the numbers of rules that may derive facts of an atom."""
        key = _property(atom)
        keys = [*self._by_property] if key is None else [key, None]
        for each in keys:
            for head, at in self._by_property.get(each, ()):
                if _may_match(head, atom):
                    yield at


def _property(atom: Atom) -> object:
    """Return the property of a triple, None if it is a variable; else the predicate."""
    if atom.predicate != TRIPLE:
        return atom.predicate
    relation = atom.arguments[1]
    return relation.constant if isinstance(relation, Term) else None


def _may_match(head: Atom, atom: Atom) -> bool:
    return head.predicate == atom.predicate and all(
        left == right or not (isinstance(left, Term) and isinstance(right, Term))
        for left, right in zip(head.arguments, atom.arguments, strict=True)
    )


def _unnamed(rule: Rule) -> Rule:
    """Return the rule with `_` for variables that occur only once."""
    counts = Counter(variable.name for variable in rule_variables(rule))
    in_heads = {v.name for head in rule.heads for v in atom_variables(head)}
    single = [name for name in counts if counts[name] == 1 and name not in in_heads]
    return substitute_rule(rule, dict.fromkeys(single, Variable(ANONYMOUS)))


def _elements(formula: Formula) -> Iterator[BodyElement]:
    if isinstance(formula, AllOf | AnyOf):
        for part in formula.parts:
            yield from _elements(part)
    else:
        yield formula


def _bound_by_atoms(parts: Iterable[Formula]) -> set[str]:
    atoms = [part for part in parts if isinstance(part, Atom)]
    return {variable.name for atom in atoms for variable in atom_variables(atom)}


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


def _unsafe(message: str, span: Span | None, advice: str) -> UnsafeRuleError:
    labels = () if span is None else (Label(span),)
    return UnsafeRuleError(message, labels=labels, help=advice)
