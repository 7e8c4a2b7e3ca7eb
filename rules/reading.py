"""One rule or formula on its way through the LALR parser.

The parser is fed token by token, so that names, nesting and length are judged as they come: a text of a
million brackets is refused at the bracket that is one too many.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, cast

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken

from nser.rules import walk
from nser.rules.build import Builder, RefusalError, start
from nser.rules.errors import (
    END,
    HeadError,
    LengthError,
    NameLengthError,
    NestingError,
    RuleSyntaxError,
)
from nser.rules.source import Source, shown
from nser.rules.syntax import (
    KEYWORDS,
    MAX_DEPTH,
    MAX_LITERALS,
    MAX_NAME,
    Atom,
    Comparison,
    Constant,
    Formula,
    Not,
    Quantified,
    Rule,
    Temporal,
    Variable,
)
from nser.rules.wording import NAMES, expected_words, nearest_sign

# One level of nesting takes at most five entries of the parser's stack (`a | b & (`).
MAX_STACK = 8 * MAX_DEPTH
# 64 literals, each within 64 quantifiers in parentheses, have about 30,000.
MAX_TOKENS = 50_000
# A text in quotes that the end of the piece cuts off.
_OPEN_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*\\?\Z')


@cache
def _lark() -> Lark:
    grammar = files("nser.rules").joinpath("rules.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start=["rule", "formula"], transformer=Builder())


@cache
def _literals() -> dict[str, str]:
    """The text of each terminal that has only one."""
    return {one.name: one.pattern.value for one in _lark().terminals if one.pattern.type == "str"}


class Reading:
    """One piece of a text on its way through the parser; `end` is where the reading stopped."""

    def __init__(
        self, source: Source, first: int, last: int, kind: str, variable: str = "t", *, prose: bool = False
    ) -> None:
        self.source = source
        self.first = first
        self.text = source.text[first:last]
        self.end = last
        self.kind = kind
        self.variable = variable
        self.prose = prose
        self.name: str | None = None
        self.begin = 0
        self.ends = (0, 0)  # of the last token but one, and of the last
        self.token: Token | None = None
        self.stack: list[object] = []
        self.tokens = 0
        self.leaves = 0

    def read(self) -> Rule | Formula:
        """The rule or formula, bound and placed. Raises RuleSyntaxError."""
        # lark leaves most methods of its interactive parser untyped.
        parser: Any = _lark().parse_interactive(self.text, self.kind)
        try:
            try:
                for token in parser.iter_parse():
                    self._judge(token, parser)
                self.token = None
                self.stack = list(parser.parser_state.state_stack)
                found = parser.feed_eof()
            except (UnexpectedToken, UnexpectedCharacters) as problem:
                found = self._stopped(parser, problem)
            return self._finish(found)
        except RefusalError as refusal:
            place = self.source.place(self.first + refusal.at)
            raise refusal.kind(refusal.found, refusal.expected, place=place, rule=self.name) from None

    def _judge(self, token: Token, parser: Any) -> None:
        """Look at a token before the parser does. Raises RefusalError."""
        at, end = start(token), token.end_pos or 0
        if not self.tokens:
            self.begin = at
        self.tokens += 1
        self.token = token
        self.ends = (self.ends[1], end)
        self.stack = list(parser.parser_state.state_stack)
        if token.type in NAMES:
            self._judge_name(token, at)
        elif token.isalpha() and (word := re.match(r"\w*", self.text[at : at + 40])) and word[0] != token:
            # Where no name may stand the lexer would read `forallt` as two words.
            raise RefusalError(RuleSyntaxError, at, shown(word[0]), (f"`{token}`",))
        elif token == "-" and self.text[end : end + 1] == ">":
            # After a term the parser asks for `-` alone, and would complain of the `>`.
            raise RefusalError(RuleSyntaxError, at, "`->`", ("`)`", "`,`"))
        if token.type == "PREDICATE" or token in {"true", "false"}:
            self.leaves += 1
        if self.leaves > MAX_LITERALS:
            raise RefusalError(LengthError, at, f"literal number {self.leaves}", (f"at most {MAX_LITERALS}",))
        if self.tokens > MAX_TOKENS:
            raise RefusalError(LengthError, at, f"more than {MAX_TOKENS} signs", ("a shorter rule",))
        if len(self.stack) > MAX_STACK:
            self._too_deep(at)

    def _judge_name(self, token: Token, at: int) -> None:
        if token in KEYWORDS:
            # The parser knows a keyword only where one may stand; a name may not be one anywhere.
            raise RefusalError(RuleSyntaxError, at, f"the keyword `{token}`", (NAMES[token.type],))
        if token.type == "RULE_NAME":
            self.name = token[:MAX_NAME]
        if len(token) > MAX_NAME:
            found = f"a name of {len(token)} characters"
            raise RefusalError(NameLengthError, at, found, (f"at most {MAX_NAME}",))

    def _too_deep(self, at: int) -> None:
        raise RefusalError(NestingError, at, "deeper nesting", (f"at most {MAX_DEPTH} levels",))

    def _stopped(self, parser: Any, problem: UnexpectedToken | UnexpectedCharacters) -> object:
        """What is read when prose follows a whole rule on a later line; else the error in words."""
        token = problem.token if isinstance(problem, UnexpectedToken) else None
        cut = token is None and _OPEN_TEXT.match(self.text, problem.pos_in_stream or 0)
        ended = bool(cut) or (token is not None and token.type == "$END")
        at = len(self.text.rstrip()) if ended else problem.pos_in_stream or 0
        refused = ended or (token is not None and token is self.token)
        fresh = not ended and self._starts_line(self.ends[0 if refused else 1], at)
        if self.prose and fresh and "$END" in parser.accepts():
            self.end = self.first + at
            return parser.feed_eof()
        if refused:
            # The parser may have closed some formulas before it saw that the token does not fit.
            parser.parser_state.state_stack[:] = self.stack
            parser.parser_state.value_stack[:] = [None] * (len(self.stack) - 1)
        accepted = parser.accepts()
        terminals = [(name, _literals().get(name, "")) for name in accepted]
        nearest = None if ended else nearest_sign(self.text, at, terminals)
        found = END if ended else self._found(at, token)
        if nearest and len(nearest[0]) > 1:
            found = shown(nearest[0])
            at = self.text.find(nearest[0], max(0, at - len(nearest[0])))
        raise RuleSyntaxError(
            found,
            ('the closing `"`',) if cut else expected_words(terminals),
            place=self.source.place(self.first + at),
            nearest=nearest[1] if nearest else None,
            rule=self.name,
        ) from None

    def _starts_line(self, after: int, at: int) -> bool:
        """Whether a line starts between two offsets, the second of which holds a word rather than a sign."""
        sign = self.text[at] in "&|~<>=∧∨→¬" or self.text.startswith("->", at)
        return "\n" in self.text[after:at] and not sign

    def _found(self, at: int, token: Token | None) -> str:
        if token is None:
            return f"the character {shown(self.text[at])}"
        return f"the keyword {shown(token)}" if token in KEYWORDS else shown(token)

    def _finish(self, found: object) -> Rule | Formula:
        if not isinstance(found, Rule):
            return self._bound(cast(Formula, found), frozenset({self.variable}))
        variables = frozenset({found.variable})
        body, head = self._bound(found.body, variables), self._bound(found.head, variables)
        if not _is_head(head):
            at = next(iter(walk.atoms(head))).position
            expected = ("one literal, such as `good(t)` or `~good(t)`",)
            offset = at.offset - self.first if at else 0
            raise RefusalError(HeadError, offset, "a `~` of a `~`", expected)
        position = self.source.position(self.first + self.begin)
        return Rule(found.name, body, head, found.weight, found.variable, found.sort, position)

    def _bound(self, formula: Formula, variables: frozenset[str]) -> Formula:
        if walk.depth(formula) > MAX_DEPTH:
            self._too_deep(_deepest(formula))
        return self._bind(formula, variables)

    def _bind(self, formula: Formula, variables: frozenset[str]) -> Formula:
        """Names that a quantifier binds become variables, offsets become places; at most MAX_DEPTH deep."""
        match formula:
            case Atom(predicate, args, position):
                bound = tuple(
                    Variable(term.name) if type(term) is Constant and term.name in variables else term for term in args
                )
                offset = self.first + (position.offset if position else 0)
                return Atom(predicate, bound, self.source.position(offset))
            case Comparison(feature, operator, threshold):
                return Comparison(cast(Atom, self._bind(feature, variables)), operator, threshold)
            case Quantified():
                variables |= {formula.variable}
        return walk.with_children(formula, tuple(self._bind(child, variables) for child in walk.children(formula)))


def _deepest(formula: Formula) -> int:
    """The offset of the first atom among the deepest ones."""
    waiting = [(formula, 1)]
    deepest, at = 0, 0
    while waiting:
        node, level = waiting.pop()
        if isinstance(node, Atom | Comparison) and level > deepest:
            position = (node if isinstance(node, Atom) else node.feature).position
            deepest, at = level, position.offset if position else 0
        waiting.extend((child, level + 1) for child in reversed(walk.children(node)))
    return at


def _is_head(formula: Formula) -> bool:
    """Whether a formula is an atom or a comparison, under temporal operators and at most one `~` each."""
    while True:
        if isinstance(formula, Not):
            formula = formula.operand
            if isinstance(formula, Not):
                return False
        if isinstance(formula, Atom | Comparison):
            return True
        if not isinstance(formula, Temporal):
            return False
        formula = formula.operand
