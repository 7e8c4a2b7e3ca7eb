"""Weights of all rules together: logistic regression with an L1 penalty and coefficients that keep their sign."""

from __future__ import annotations

import torch
from torch import Tensor

from nser.grounding.fit_settings import FitSettings

ITERATIONS = 500
ENOUGH = 1e-6  # change of the largest coefficient, in logits, below which the iteration ends


@torch.no_grad()
def learn_coefficients(signed: Tensor, good: Tensor, settings: FitSettings) -> list[float]:
    """[R] coefficients c ≥ 0 of a logistic regression of `good` on the firings; 0 for rules that add nothing.

    signed: [T, R] firings, negative for rules that blame;  good: [T] zeros and ones

    The L1 penalty chooses the rules; those that it leaves are fitted again without it, since it draws the
    coefficients that stay towards 0 too, the small ones relatively more (the relaxed lasso of Meinshausen, 2007).
    """
    if not signed.shape[1]:
        return []
    # The smallest penalty under which every coefficient is 0 is the steepest slope there.
    most = float((signed.T @ (good - good.mean())).clamp_min(0).max()) / len(good)
    chosen = (_regress(signed, good, settings.penalty * most) > 0).nonzero()[:, 0]
    coefficients = torch.zeros(signed.shape[1], dtype=signed.dtype)
    if len(chosen):
        coefficients[chosen] = _regress(signed[:, chosen], good, 0.0)
    return [float(value) for value in coefficients]


def _regress(signed: Tensor, good: Tensor, penalty: float) -> Tensor:
    """[R] c ≥ 0 that minimise mean log-loss(b + signed · c) + penalty · Σ c; the intercept b goes free.

    Accelerated proximal gradient. Source: Beck and Teboulle (2009), FISTA.
    """
    rows, rules = signed.shape
    inputs = torch.cat([signed, signed.new_ones(rows, 1)], 1)  # the last is the intercept
    # The log-loss has a curvature of 1/4 at the most.
    step = 4 * rows / float(torch.linalg.eigvalsh(inputs.T @ inputs)[-1])
    shrink = torch.full((rules + 1,), step * penalty, dtype=signed.dtype)
    shrink[-1] = 0
    least = torch.zeros(rules + 1, dtype=signed.dtype)
    least[-1] = -torch.inf
    found = torch.zeros(rules + 1, dtype=signed.dtype)
    found[-1] = torch.logit(good.mean(), eps=1e-6)
    ahead, momentum = found.clone(), 1.0
    for _ in range(ITERATIONS):
        slope = inputs.T @ (torch.sigmoid(inputs @ ahead) - good) / rows
        moved = torch.maximum(ahead - step * slope - shrink, least)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = moved + (momentum - 1) / following * (moved - found)
        change = float((moved - found).abs().max())
        found, momentum = moved, following
        if change < ENOUGH:
            break
    return found[:-1]
