"""What a learner may quote: tools that were called, and phrases that tell good rollouts from bad ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nser.grounding.rollout_words import stands_in
from nser.grounding.transcripts import Transcript
from nser.rules.syntax import MAX_TEXT

MOST_TOOLS, MOST_PHRASES = 12, 24
LONGEST = 3  # words of a phrase
RAREST = 0.05  # share of the rollouts that a phrase stands in, and is missing from, at least
MAX_WORDS = 2_000  # of a rollout that are read; beyond them phrases repeat
_WORD = re.compile(r"[\w'<>/=.-]*\w[\w'<>/=-]*")


def tools(rollouts: Sequence[Transcript]) -> tuple[str, ...]:
    """The tools called in most rollouts, at most 12; of equally common ones the first by name."""
    counts = Counter(tool for rollout in rollouts for tool in {c.tool for turn in rollout.own for c in turn.calls})
    fitting = [(-count, tool) for tool, count in counts.items() if 0 < len(tool) <= MAX_TEXT]
    return tuple(tool for _, tool in sorted(fitting)[:MOST_TOOLS])


def phrases(rollouts: Sequence[Transcript], outcomes: NDArray[np.float64]) -> tuple[str, ...]:
    """Phrases of one to three words that the agent wrote, at most 24: those whose presence goes with the outcome.

    Ranked by |mean outcome with − mean outcome without| · √n, n being the smaller side; a phrase that stands in the
    same rollouts as a better or shorter one is left out.
    """
    texts = [rollout.said.lower() for rollout in rollouts]
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_phrases(text))
    least = max(2.0, RAREST * len(texts))
    found = []
    seen: set[bytes] = set()
    candidates = sorted((p for p, n in counts.items() if n >= least), key=lambda phrase: (len(phrase.split()), phrase))
    for phrase in candidates:
        there = np.array([stands_in(phrase, text) for text in texts])  # as predicates look for it
        key = np.packbits(there).tobytes()
        small = min(int(there.sum()), len(texts) - int(there.sum()))
        if small < least or key in seen:
            continue
        seen.add(key)
        apart = abs(float(outcomes[there].mean() - outcomes[~there].mean()))
        found.append((-apart * np.sqrt(small), phrase))
    return tuple(phrase for _, phrase in sorted(found)[:MOST_PHRASES])


def _phrases(text: str) -> set[str]:
    """The phrases of one text, as they stand in it: words with nothing but one blank between."""
    found: set[str] = set()
    for line in text.splitlines():
        spans = [match.span() for match in _WORD.finditer(line)][:MAX_WORDS]
        for first in range(len(spans)):
            for last in range(first, min(first + LONGEST, len(spans))):
                if last > first and line[spans[last - 1][1] : spans[last][0]] != " ":
                    break
                phrase = line[spans[first][0] : spans[last][1]]
                if len(phrase) <= MAX_TEXT:
                    found.add(phrase)
    return found
