"""Check 7: does a rule fire often enough, and are its firings worth what its head claims, on held-out episodes."""

from __future__ import annotations

from nser.induce.checks.firing import is_judged
from nser.induce.figures import Figures
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, refusal

UNJUDGED, RARE, RARE_HELD, NO_LIFT, NO_BOUND, REFUTED = "D700", "D701", "D702", "D703", "D704", "D705"
HELD_FIRINGS = 3  # fewer held-out firings than these say nothing for or against


def check(rule: Rule, firings: int, held: Figures, bound: float, least: int) -> Verdict | None:
    """The first thing that data say against a rule; `None` where they support it.

    firings: on all rows;  held: figures on held-out episodes;  bound: lower bound of the mean outcome over all rows,
    signed as the head claims it;  least: firings that count as evidence
    """
    if not is_judged(rule):
        return refusal(rule, UNJUDGED, "its head is neither good(t) nor ~good(t), which outcomes can judge")
    if firings < least:
        advice = "wait for more episodes, or ask for less in the body"
        return refusal(rule, RARE, f"it fired {firings} times, expected at least {least}", advice)
    if held.firings < HELD_FIRINGS:
        sentence = f"it fired {held.firings} times in held-out episodes, expected {HELD_FIRINGS} or more"
        return refusal(rule, RARE_HELD, sentence, "wait for more episodes")
    if not held.lift > 0:
        sentence = f"its lift on held-out episodes is {held.lift:.4f}, expected above 0"
        return refusal(rule, NO_LIFT, sentence, "ask for more in the body, or claim the opposite")
    if not bound > 0:
        sentence = f"the lower bound of its mean outcome is {bound:.4f}, expected above 0"
        return refusal(rule, NO_BOUND, sentence, "ask for more in the body")
    return None


def check_standing(rule: Rule, found: Figures, least: int) -> Verdict | None:
    """What data say against a rule that a person put in force: it goes only where they refute it.

    Little evidence is no evidence against it; the whole 95 % interval of its lift over all episodes must lie below 0.
    """
    if not is_judged(rule) or found.firings < least or not found.lift_high < 0:
        return None
    sentence = f"its lift lies between {found.lift_low:.4g} and {found.lift_high:.4g}, below 0"
    return refusal(rule, REFUTED, sentence, "change it in the newest rule file, and it is taken again")
