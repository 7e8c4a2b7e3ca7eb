from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nser.replay import ArgumentError
from nser.trainers.offpolicy import Correction, correct, drift, importance_weights

LOGPS = st.lists(st.floats(-12.0, 0.0), min_size=3, max_size=3)


def clipped_loss(now: Tensor, old: Tensor, advantages: Tensor, epsilon: float = 0.2) -> Tensor:
    ratio = (now - old).exp()
    return -torch.min(ratio * advantages, ratio.clamp(1 - epsilon, 1 + epsilon) * advantages).sum()


@settings(deadline=None)
@given(LOGPS, LOGPS, st.floats(1.0, 10.0))
def test_token_weights_are_the_truncated_ratio(proximal: list[float], behavior: list[float], cap: float) -> None:
    found = importance_weights(
        torch.tensor([proximal]).double(), torch.tensor([behavior]).double(), torch.ones(1, 3), Correction(cap=cap)
    )
    slow = [min(math.exp(new - old), cap) for new, old in zip(proximal, behavior, strict=True)]
    torch.testing.assert_close(found, torch.tensor([slow]).double(), rtol=1e-5, atol=1e-6)


@settings(deadline=None)
@given(LOGPS, LOGPS)
def test_sequence_weights_are_the_geometric_mean_of_the_ratios(proximal: list[float], behavior: list[float]) -> None:
    mask = torch.tensor([[1, 0, 1]])
    found = importance_weights(
        torch.tensor([proximal]).double(),
        torch.tensor([behavior]).double(),
        mask,
        Correction(level="sequence", cap=1e9),
    )
    ratios = [math.exp(proximal[place] - behavior[place]) for place in (0, 2)]
    assert found.item() == pytest.approx(math.sqrt(ratios[0] * ratios[1]), rel=1e-4)


def test_what_stands_in_padding_can_not_spoil_a_weight() -> None:
    proximal = torch.tensor([[-1.0, math.inf], [math.nan, -math.inf]])
    mask = torch.tensor([[1, 0], [0, 0]])
    token = importance_weights(proximal, torch.full((2, 2), -1.0), mask, Correction())
    assert token.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    sequence = importance_weights(proximal, torch.full((2, 2), -1.0), mask, Correction(level="sequence"))
    assert sequence.tolist() == [1.0, 1.0]


def test_a_rollout_of_the_present_policy_is_left_as_it_is() -> None:
    logps, advantages = torch.tensor([[-0.5, -2.0]]), torch.tensor([-1.5])
    mask = torch.ones(1, 2)
    for level, shape in (("token", (1, 2)), ("sequence", (1,))):
        fixed = correct(Correction(level=level), advantages, logps, logps, mask)  # type: ignore[arg-type]
        assert fixed.advantages.shape == shape
        assert torch.equal(fixed.advantages, torch.full(shape, -1.5))
    clip = correct(Correction("clip"), advantages, logps, logps, mask)
    assert torch.equal(clip.advantages, advantages)
    assert torch.equal(clip.old_logps, logps)


def test_clipping_silences_what_has_drifted_and_decoupling_does_not() -> None:
    behavior, mask, advantages = torch.tensor([[-2.0]]), torch.ones(1, 1), torch.tensor([1.0])
    gradients = {}
    for kind in ("clip", "decoupled"):
        now = torch.tensor([[-1.0]], requires_grad=True)  # the ratio is e, far above 1.2
        fixed = correct(Correction(kind), advantages, now.detach(), behavior, mask)
        clipped_loss(now, fixed.old_logps, fixed.advantages).backward()
        assert now.grad is not None
        gradients[kind] = now.grad.item()
    assert gradients["clip"] == 0.0
    assert gradients["decoupled"] == pytest.approx(-2.0)  # truncated at the cap


def test_decoupled_gradients_are_those_of_importance_sampling_below_the_cap() -> None:
    """The gradient of E_behaviour[ratio · A] at the present policy: what on-policy data would give in expectation."""
    logits = torch.tensor([0.3, -0.2, 0.1, 0.9], dtype=torch.float64, requires_grad=True)
    behavior = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64)
    values = torch.tensor([1.0, -2.0, 0.5, 0.3], dtype=torch.float64)
    now = logits.log_softmax(0).unsqueeze(1)  # every token once, weighted by how often behaviour would draw it
    fixed = correct(Correction(cap=1e9), values, now.detach(), behavior.log().unsqueeze(1), torch.ones(4, 1))
    ratio = (now - fixed.old_logps).exp()
    (found,) = torch.autograd.grad((behavior * (ratio * fixed.advantages).squeeze(1)).sum(), logits)
    (wanted,) = torch.autograd.grad((logits.softmax(0) * values).sum(), logits)
    torch.testing.assert_close(found, wanted)


def test_drift_counts_tokens_that_are_trained_on() -> None:
    proximal = torch.tensor([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]]).log()
    behavior = torch.tensor([[0.3, 0.5, 0.1], [0.3, 0.5, 0.9]]).log()
    mask = torch.tensor([[1, 1, 0], [1, 1, 0]])
    found = drift(torch.tensor([1.0, -1.0]), proximal, behavior, mask, cap=2.0, epsilon=0.2)
    assert found.gap == pytest.approx(math.log(3) / 2)
    assert found.truncated == 0.25
    assert found.silenced == 0.5
    nothing = drift(torch.tensor([1.0, -1.0]), proximal, behavior, torch.zeros(2, 3), cap=2.0, epsilon=0.2)
    assert (nothing.gap, nothing.truncated, nothing.silenced) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"kind": "none"}, "kind"), ({"level": "word"}, "level"), ({"cap": 0.0}, "cap"), ({"cap": math.nan}, "cap")],
)
def test_settings_out_of_range_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Correction(**options)
    assert caught.value.argument == named
