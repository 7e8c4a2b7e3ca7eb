"""What rules may say of any rollout: its length and turns, tools and errors, and what was written.

Rules over `rollout` speak of a whole rollout, rules over `turn` of one message in its place, where `next`, `prev` and
windows look at the other messages of the same rollout. Texts in quotes are found as whole words, whatever the case:
"go" is not in "goal". Some events are told by a convention, for no chat format has a field for them: each predicate
names its own. A task's own predicates are declared as these are, see `nser.grounding.about_text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from nser.grounding.about_text import rollout_number, rollout_predicate, turn_number, turn_predicate
from nser.grounding.answers import answers_in
from nser.grounding.transcripts import AGENT, ROLES, Transcript, Turn
from nser.grounding.vocabulary import Vocabulary

_INVALID = re.compile(
    r"\W*(invalid|illegal|unknown|unrecogni[sz]ed)\s+(action|move|command|tool|input)\b", re.IGNORECASE
)
_ERROR = re.compile(r"\W*(error|exception|traceback|fatal)\b", re.IGNORECASE)
_GOAL = re.compile(r"\b(reached the goal|solved|you (win|won)|success(fully)?|correct)\b", re.IGNORECASE)
PASSAGE, TIMES = 8, 3  # words of a passage, and how often it stands in a text that goes in circles


@rollout_number(unit="words", low=0.0, high=2000.0, example="length(r) > 400")
def length(rollout: Transcript) -> int:
    """Words that the agent wrote."""
    return len(rollout.said.split())


@rollout_number(unit="turns", low=0.0, high=50.0, example="turns(r) >= 5")
def turns(rollout: Transcript) -> int:
    """Turns that the agent took."""
    return len(rollout.own)


@rollout_number("tool", unit="calls", low=0.0, high=50.0, example='tool_calls(r, "search") >= 2')
def tool_calls(rollout: Transcript, tool: str) -> int:
    """Calls of this tool."""
    return sum(call.tool == tool for turn in rollout.own for call in turn.calls)


@rollout_number(unit="calls", low=0.0, high=50.0, example="all_calls(r) > 10")
def all_calls(rollout: Transcript) -> int:
    """Calls of any tool."""
    return sum(len(turn.calls) for turn in rollout.own)


@rollout_number(unit="turns", low=0.0, high=50.0, example="invalid_actions(r) >= 1")
def invalid_actions(rollout: Transcript) -> int:
    """Turns of the agent that the environment answers as invalid."""
    return sum(map(invalid_action, rollout.turns))


@rollout_number(unit="turns", low=0.0, high=50.0, example="errors(r) >= 3")
def errors(rollout: Transcript) -> int:
    """Replies of tools and environments that tell of an error."""
    return sum(map(error_reply, rollout.turns))


@rollout_predicate("text", example='contains(r, "I am not sure")')
def contains(rollout: Transcript, text: str) -> bool:
    """The agent wrote {text} in some turn."""
    return stands_in(text, rollout.said)


@rollout_predicate("text", example='ends_with(r, "done.")')
def ends_with(rollout: Transcript, text: str) -> bool:
    """The agent's last turn ends with {text}."""
    return rollout.answer.rstrip().casefold().endswith(text.casefold())


@rollout_predicate("reply", example='was_told(r, "not found")')
def was_told(rollout: Transcript, reply: str) -> bool:
    """A user, a tool or the environment wrote {reply} before the agent's last turn."""
    last = rollout.own[-1].place if rollout.own else 0
    return any(stands_in(reply, turn.text) for turn in rollout.turns[:last] if turn.role in ("user", "tool"))


@rollout_predicate(example="repeats(r) & length(r) > 400")
def repeats(rollout: Transcript) -> bool:
    """The agent goes in circles: the same turn twice in a row, or a passage of 8 words three times in a turn."""
    return any(repeats_previous(turn) or _circles(turn.text) for turn in rollout.own)


@rollout_predicate(example="answer_format_ok(r)")
def answer_format_ok(rollout: Transcript) -> bool:
    r"""The agent's last turn holds exactly one answer as `<answer>`, `\boxed` or a line `Answer:`."""
    return len(answers_in(rollout.answer)) == 1


@rollout_predicate(example="reached_goal(r) & turns(r) < 10", scope="transition")
def reached_goal(rollout: Transcript) -> bool:
    """The task was done: the record says `success`, or else the last reply of the environment does."""
    for name in ("success", "is_success", "solved"):
        if isinstance(known := rollout.metadata.get(name), bool):
            return known
    last = rollout.turns[-1]
    return last.role in ("user", "tool") and bool(_GOAL.search(last.text))


@rollout_predicate(example="cut_off(r)")
def cut_off(rollout: Transcript) -> bool:
    """The rollout ended for want of room: the record says `truncated`, or `length` as the `finish_reason`."""
    return bool(rollout.metadata.get("truncated")) or rollout.metadata.get("finish_reason") == "length"


@turn_predicate("role", example="by(u, assistant) & error_reply(u+1)")
def by(turn: Turn, role: str) -> bool:
    """This turn is by the {role}."""
    return turn.role == role


@turn_predicate("tool", example='calls(u, "search") & next(error_reply(u))')
def calls(turn: Turn, tool: str) -> bool:
    """This turn calls the tool {tool}."""
    return any(call.tool == tool for call in turn.calls)


@turn_predicate("text", example='by(u, assistant) & says(u, "wait")')
def says(turn: Turn, text: str) -> bool:
    """This turn holds {text}."""
    return stands_in(text, turn.text)


@turn_predicate(example="invalid_action(u) & prev(invalid_action(u-1))")
def invalid_action(turn: Turn) -> bool:
    """The agent's turn is answered with "Invalid action", or with a message marked `invalid_action`."""
    reply = turn.reply
    if turn.role != AGENT or reply is None or reply.role == AGENT:
        return False
    return bool(reply.message.fields.get("invalid_action")) or bool(_INVALID.match(reply.text))


@turn_predicate(example="error_reply(u)")
def error_reply(turn: Turn) -> bool:
    """A tool or environment tells of an error: the text begins with "Error" or "Traceback", or is marked `is_error`."""
    if turn.role not in ("user", "tool"):
        return False
    return bool(turn.message.fields.get("is_error")) or bool(_ERROR.match(turn.text))


@turn_predicate(example="repeats_previous(u) & by(u, assistant)")
def repeats_previous(turn: Turn) -> bool:
    """This turn says and calls the same as the last one of the same speaker."""
    before = turn.earlier
    return before is not None and (_plain(turn.text), turn.calls) == (_plain(before.text), before.calls)


@turn_number(unit="words", low=0.0, high=1000.0, example="words(u) > 100")
def words(turn: Turn) -> int:
    """Words of this turn."""
    return len(turn.text.split())


@turn_number(unit="messages", low=0.0, high=100.0, example="place(u) < 3")
def place(turn: Turn) -> int:
    """Messages before this one."""
    return turn.place


def stands_in(quoted: str, text: str) -> bool:
    """Whether a text holds another as whole words, whatever the case; signs at its ends need no room.

    >>> stands_in("go", "The goal"), stands_in("Go east", "go east!"), stands_in("<answer>", "so<Answer>4</answer>")
    (False, True, True)
    """
    return bool(_whole(quoted).search(text))


@lru_cache(maxsize=4096)
def _whole(quoted: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if re.match(r"\w", quoted) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", quoted) else ""
    return re.compile(f"{before}{re.escape(quoted)}{after}", re.IGNORECASE)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _circles(text: str) -> bool:
    tokens = text.casefold().split()
    seen: dict[tuple[str, ...], int] = {}
    for first in range(len(tokens) - PASSAGE + 1):
        passage = tuple(tokens[first : first + PASSAGE])
        seen[passage] = seen.get(passage, 0) + 1
        if seen[passage] == TIMES:
            return True
    return False


ROLLOUT_WORDS: tuple[Callable[..., float], ...] = (
    *(length, turns, tool_calls, all_calls, invalid_actions, errors),
    *(contains, ends_with, was_told, repeats, answer_format_ok, reached_goal, cut_off),
)
TURN_WORDS: tuple[Callable[..., float], ...] = (
    by,
    calls,
    says,
    invalid_action,
    error_reply,
    repeats_previous,
    words,
    place,
)
TEXT_SORTS: dict[str, tuple[str, ...]] = {"text": (), "reply": (), "tool": ()}

ROLLOUTS = Vocabulary(
    "rollouts",
    (*ROLLOUT_WORDS, *TURN_WORDS),
    {"role": ROLES},
    description="A language model answers a prompt, or acts in an environment turn by turn, and is rewarded for it.",
    texts=TEXT_SORTS,
)
"""Both sorts; `ROLLOUTS.about("rollout")` and `ROLLOUTS.about("turn")` are what one kind of rule may say."""
