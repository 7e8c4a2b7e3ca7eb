"""What makes an old rollout safe to learn from: corrections for the policy that generated it being another one.

Three policies are at work on a replayed token: *behaviour* generated it, *proximal* is the policy at the start of
this update, *current* is the one being trained. Every PPO-like loss multiplies the advantage A with the ratio
current/old and clips it around 1.

- ``clip`` puts behaviour in the place of old, as the papers do (arXiv 2604.16918, 2606.04560). The ratio then starts
  far from 1, and a token whose probability has risen past the clip has no gradient any more.
- ``decoupled`` puts proximal in the place of old, so that the clip again limits this one update, and multiplies A
  with the truncated importance weight min(proximal/behaviour, cap) of the gap before it (decoupled PPO, Hilton et
  al., arXiv 2110.00641; truncation as in V-trace, arXiv 1802.01561).

Torch tensors in, torch tensors out, whatever the trainer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from nser.replay.errors import ArgumentError

Kind = Literal["decoupled", "clip"]
Level = Literal["token", "sequence"]


@dataclass(frozen=True, slots=True)
class Correction:
    """How a replayed rollout is corrected; see the module.

    kind:  "decoupled" or "clip"
    cap:   > 0, upper bound of an importance weight; without meaning for "clip"
    level: "token" weighs every token by its own ratio; "sequence" the whole rollout by the geometric mean of them
           (what GSPO and GMPO clip by, too)

    Raises ``ArgumentError``.
    """

    kind: Kind = "decoupled"
    cap: float = 2.0
    level: Level = "token"

    def __post_init__(self) -> None:
        for name, choices in (("kind", get_args(Kind)), ("level", get_args(Level))):
            if getattr(self, name) not in choices:
                raise ArgumentError(name, getattr(self, name), f"one of {', '.join(choices)}", "Choose one of them.")
        if not self.cap > 0.0:
            raise ArgumentError("cap", self.cap, "a number > 0", "2 is usual; math.inf truncates nothing.")


@dataclass(frozen=True, slots=True)
class Corrected:
    """What the loss of replayed rows needs: ``advantages`` [n] or [n, T], and ``old_logps`` [n, T] for its ratio."""

    advantages: Tensor
    old_logps: Tensor


def correct(correction: Correction, advantages: Tensor, proximal: Tensor, behavior: Tensor, mask: Tensor) -> Corrected:
    """Advantages [n] and log-probabilities [n, T] (≤ 0, nats) under two policies, where ``mask`` [n, T] is true.

    With "decoupled" at token level the advantages come back as [n, T], otherwise as [n].
    """
    if correction.kind == "clip":
        return Corrected(advantages, behavior)
    weights = importance_weights(proximal, behavior, mask, correction)
    return Corrected((advantages.unsqueeze(1) if weights.ndim == 2 else advantages) * weights, proximal)


def importance_weights(proximal: Tensor, behavior: Tensor, mask: Tensor, correction: Correction) -> Tensor:
    """Truncated weights in [0, cap]: [n, T], 1 outside the mask; or [n], 1 for an empty row, at sequence level.

    >>> import torch
    >>> logs = torch.tensor([[0.5, 0.8]]).log()
    >>> importance_weights(logs, torch.tensor([[0.1, 0.9]]).log(), torch.ones(1, 2), Correction()).round(decimals=3)
    tensor([[2.0000, 0.8890]])
    """
    # Masked before the exponential: what stands in padding may be anything, infinities included.
    gap = (proximal - behavior).masked_fill(~mask.bool(), 0.0)  # [n, T]
    if correction.level == "sequence":
        gap = gap.sum(1) / mask.bool().sum(1).clamp(min=1)  # [n]
    return gap.exp().clamp(max=correction.cap)


def weigh(advantages: Tensor, weights: Tensor) -> Tensor:
    """Advantages [n] or [n, T] times weights [n] > 0: an exact weight of each rollout's policy loss.

    Every loss of the PPO family is the advantage times something that sees no more of it than its sign. KL and entropy
    terms are not touched.
    """
    return advantages * (weights.unsqueeze(1) if advantages.ndim == 2 else weights)


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the policy has gone from those that generated the replayed tokens.

    ``gap``       mean |log proximal − log behaviour|, nats
    ``truncated`` share of tokens whose ratio lies above the cap
    ``silenced``  share of tokens that clipping at 1 ± ε around the behaviour policy would leave without gradient
    """

    gap: float
    truncated: float
    silenced: float


def drift(advantages: Tensor, proximal: Tensor, behavior: Tensor, mask: Tensor, cap: float, epsilon: float) -> Drift:
    """Figures over the tokens that ``mask`` [n, T] names; all 0 where it names none. Advantages [n]."""
    chosen = mask.bool()
    if not chosen.any():
        return Drift(0.0, 0.0, 0.0)
    gap = proximal - behavior
    ratio, sign = gap.exp(), advantages.unsqueeze(1).expand_as(gap)
    silent = ((sign > 0) & (ratio > 1 + epsilon)) | ((sign < 0) & (ratio < 1 - epsilon))
    return Drift(
        gap.abs()[chosen].mean().item(),
        (ratio > cap)[chosen].float().mean().item(),
        silent[chosen].float().mean().item(),
    )
