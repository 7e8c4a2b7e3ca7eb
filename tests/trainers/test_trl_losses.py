"""Advantages times w weigh each rollout's loss exactly, whatever the loss of TRL."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from trl import GRPOTrainer

from nser.trainers import digits
from nser.trainers.offpolicy import weigh
from tests.trainers.trl_host import trainer

ROWS, LENGTH = 6, 4
WEIGHTS = torch.tensor([0.25, 1.0, 3.0, 0.5, 7.0, 1.5], dtype=torch.float64)


def loss_types() -> list[str]:
    """As TRL's own code compares them."""
    source = inspect.getsource(GRPOTrainer._compute_loss)
    lists = re.findall(r"self\.loss_type (?:==|in) (\[[^\]]*\]|\"\w+\")", source)
    return sorted({name for found in lists for name in re.findall(r'"(\w+)"', found)})


def test_the_list_is_really_read() -> None:
    assert {"grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"} <= set(loss_types())


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = trainer(tmp_path_factory.mktemp("host"), model=digits.model().double())
    made.model.train()
    return made


@pytest.fixture(scope="module")
def gmpo_host(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tests.trainers.test_trl_gmpo import gmpo_trainer

    made = gmpo_trainer(tmp_path_factory.mktemp("gmpo"), model=digits.model().double())
    made.model.train()
    return made


def batch() -> dict[str, Tensor]:
    """Rows of unequal length, far enough off policy that clips bite."""
    random = torch.Generator().manual_seed(3)
    lengths = torch.tensor([4, 2, 3, 4, 1, 4])
    mask = (torch.arange(LENGTH) < lengths.unsqueeze(1)).long()
    noise = torch.randn(ROWS, LENGTH, generator=random, dtype=torch.float64)
    return {
        "prompt_ids": torch.tensor([[3, 4 + row] for row in range(ROWS)]),
        "prompt_mask": torch.ones(ROWS, 2, dtype=torch.long),
        "completion_ids": torch.randint(4, 22, (ROWS, LENGTH), generator=random) * mask,
        "completion_mask": mask,
        "advantages": torch.tensor([1.2, -0.7, 0.4, -1.5, 0.9, -0.3], dtype=torch.float64),
        "num_items_in_batch": mask.sum(),
        "old_per_token_logps": -3.1 + 0.5 * noise,
        "ref_per_token_logps": -3.1 - 0.5 * noise,
    }


def gradient(host: Any, advantages: Tensor) -> Tensor:
    """Of the loss over the whole batch with these advantages, all parameters in a row."""
    host.model.zero_grad()
    host._compute_loss(host.model, batch() | {"advantages": advantages}).backward()
    return torch.cat([weight.grad.flatten() for weight in host.model.parameters()])


def assert_exact(host: Any, per_token: bool) -> None:
    advantages = batch()["advantages"]
    if per_token:
        advantages = advantages.unsqueeze(1) * torch.linspace(0.5, 1.5, LENGTH, dtype=torch.float64)
    nothing = gradient(host, torch.zeros_like(advantages))  # KL alone
    wanted = nothing.clone()
    for row in range(ROWS):
        alone = torch.zeros_like(advantages)
        alone[row] = advantages[row]
        wanted += WEIGHTS[row] * (gradient(host, alone) - nothing)
    found = gradient(host, weigh(advantages, WEIGHTS))
    assert wanted.abs().max() > 1e-3
    assert (found - wanted).abs().max() <= 1e-6 * wanted.abs().max()


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss_type", loss_types())
def test_a_weighted_advantage_is_a_weighted_loss(host: Any, loss_type: str, level: str, beta: float) -> None:
    host.loss_type, host.importance_sampling_level, host.beta = loss_type, level, beta
    host.current_gradient_accumulation_steps = 1
    assert_exact(host, per_token=False)
    assert_exact(host, per_token=True)


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_so_it_is_in_gmpo(gmpo_host: Any, beta: float) -> None:
    gmpo_host.beta = beta
    gmpo_host.current_gradient_accumulation_steps = 1
    assert_exact(gmpo_host, per_token=False)
