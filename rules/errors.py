"""What can be wrong with a rule: one class a kind, each with a stable code, the data first.

R1 is the text, R2 the names, R9 the files; R3 and up belong to later checks. Every message says what was
found, what was expected and the way out in one sentence, so that it serves a person and a repair prompt.
"""

from __future__ import annotations

from typing import ClassVar

from nser.errors import NserError
from nser.rules.source import Place
from nser.rules.syntax import MAX_NAME, MAX_RULES, MAX_TEXT, MAX_WINDOW, Position

END = "the end of the text"


class RuleError(NserError):
    """Something is wrong with a rule.

    `found` and each word of `expected` are fit to be read in a sentence; `nearest` is the known spelling
    that the writer probably meant; `rule` is the name of the rule; `place` is where, `None` when the rule
    was built by a program and stands in no text.
    """

    code: ClassVar[str] = "R000"
    way_out: ClassVar[str] = ""

    def __init__(
        self,
        found: str,
        expected: tuple[str, ...] = (),
        *,
        place: Place | None = None,
        nearest: str | None = None,
        rule: str | None = None,
    ) -> None:
        super().__init__(found, expected)
        self.found = found
        self.expected = expected
        self.place = place
        self.nearest = nearest
        self.rule = rule

    @property
    def position(self) -> Position | None:
        """Where in the text, if there is one."""
        return self.place.position if self.place else None

    @property
    def line(self) -> str:
        """The source line, or a part of a long one; empty without a text."""
        return self.place.line if self.place else ""

    def pointed(self) -> str:
        """The source line with a caret under the place; empty without a text."""
        return self.place.pointed() if self.place and self.place.line else ""

    def as_dict(self) -> dict[str, object]:
        """JSON values: code, message, rule, line and column (from 1), offset, found, expected, nearest."""
        at = self.position
        return {
            "code": self.code,
            "message": str(self),
            "rule": self.rule,
            "line": at.line if at else None,
            "column": at.column if at else None,
            "offset": at.offset if at else None,
            "found": self.found,
            "expected": list(self.expected),
            "nearest": self.nearest,
        }

    def __str__(self) -> str:
        where = f" at line {self.position.line}, column {self.position.column}" if self.position else ""
        name = f" in rule `{self.rule}`" if self.rule else ""
        expected = f", expected {one_of(self.expected)}" if self.expected else ""
        nearest = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        way_out = f"; {self.way_out}" if self.way_out and not nearest else ""
        return f"{self.code}{where}{name}: found {self.found}{expected}{way_out}{nearest}"


def one_of(words: tuple[str, ...]) -> str:
    """`a, b or c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class RuleSyntaxError(RuleError):
    """The text is not a rule of the language."""

    code = "R101"

    @property
    def cut(self) -> bool:
        """Whether the text ended too early, as a reply does that ran out of tokens."""
        return self.found == END


class NoRuleError(RuleSyntaxError):
    """A text holds something, but no rule."""

    code = "R100"


class NestingError(RuleSyntaxError):
    """A formula is nested too deeply."""

    code = "R102"
    way_out = "split the rule, or leave out repeated `~` and parentheses"


class LengthError(RuleSyntaxError):
    """A rule holds too many literals or tokens."""

    code = "R103"
    way_out = "split it into several rules"


class NameLengthError(RuleSyntaxError):
    """A name is too long."""

    code = "R104"
    way_out = f"shorten the name to {MAX_NAME} characters"


class NumberError(RuleSyntaxError):
    """A number is not finite, or a weight is outside [0, 1]."""

    code = "R105"


class WindowError(RuleSyntaxError):
    """A window ends before it starts, or a window or an offset reaches too far."""

    code = "R106"
    way_out = f"write `[a..b]` with 0 <= a <= b <= {MAX_WINDOW}"


class DuplicateNameError(RuleSyntaxError):
    """Two rules of one text share a name; the first is kept."""

    code = "R107"
    way_out = "rename one of the two"


class TooManyRulesError(RuleSyntaxError):
    """A text holds too many rules; the first ones are kept."""

    code = "R108"
    way_out = f"split the file into parts of {MAX_RULES} rules"


class HeadError(RuleSyntaxError):
    """The head is not one literal."""

    code = "R109"


class StrayTextError(RuleSyntaxError):
    """A rule file holds text that belongs to no rule."""

    code = "R110"
    way_out = "begin a rule with `rule` and a comment with `#`"


class TextError(RuleSyntaxError):
    """A text in quotes is too long, or holds half a character."""

    code = "R111"
    way_out = f"quote one line of at most {MAX_TEXT} characters"


class RuleNameError(RuleError):
    """A rule uses a name as the vocabulary does not allow."""

    code = "R200"


class UnknownPredicateError(RuleNameError):
    """The vocabulary has no such predicate."""

    code = "R201"


class ArityError(RuleNameError):
    """A predicate has too few or too many arguments."""

    code = "R202"


class SortError(RuleNameError):
    """An argument is of another sort than the predicate takes."""

    code = "R203"


class UnknownConstantError(RuleNameError):
    """The sort has no such constant."""

    code = "R204"


class UnboundVariableError(RuleNameError):
    """A variable is used that no quantifier binds."""

    code = "R205"


class OffsetError(RuleNameError):
    """A time offset stands on something that is not a step."""

    code = "R206"
    way_out = "offsets such as `t+1` are for the step variable"


class NumberAsTruthError(RuleNameError):
    """A numeric feature stands where a truth degree belongs."""

    code = "R207"


class TruthComparedError(RuleNameError):
    """A truth degree is compared with a threshold."""

    code = "R208"


class GoodInBodyError(RuleNameError):
    """`good` stands elsewhere than as the bare head: it is what data judges, so no evidence for itself."""

    code = "R209"
    way_out = "`good(t)` and `~good(t)` are heads"


class PredicateNameError(RuleNameError):
    """A vocabulary registers a predicate under a name that the language cannot use."""

    code = "R210"


class UnknownSortError(RuleNameError):
    """A quantifier runs over a sort that the vocabulary lacks."""

    code = "R211"


class ShadowedVariableError(RuleNameError):
    """A quantifier binds a name that is bound already, or that is a constant."""

    code = "R212"
    way_out = "give the inner variable another name"


class HeadInBodyError(RuleNameError):
    """The head's own atom stands in the body, so that the rule proves itself."""

    code = "R213"
    way_out = "take it out of the body"


class TimeError(RuleNameError):
    """A temporal operator stands in a rule whose things have no order in time."""

    code = "R214"
    way_out = "only steps and turns follow each other"


class RuleFileError(RuleError):
    """A rule file cannot be read or written; `found` begins with its path."""

    code = "R901"


class ProvenanceError(RuleError):
    """What is recorded beside a rule file is missing or broken; the rules themselves are read."""

    code = "R902"
