from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nser.study.network import AdamSettings, StackedAdam, StackedNetwork

SIZES = (5, 8, 6, 3)


def twin(stack: StackedNetwork, member: int) -> nn.Sequential:
    """The same perceptron out of `torch.nn`."""
    modules: list[nn.Module] = []
    for number, (weight, bias) in enumerate(stack.layers):
        layer = nn.Linear(weight.shape[1], weight.shape[2])
        layer.weight.data = weight[member].T.clone()
        layer.bias.data = bias[member, 0].clone()
        modules += [layer, nn.ReLU()] if number < len(stack.layers) - 1 else [layer]
    return nn.Sequential(*modules)


def flattened(module: nn.Sequential, gradient: bool) -> torch.Tensor:
    parts = []
    for layer in module:
        if isinstance(layer, nn.Linear):
            for value in (layer.weight, layer.bias):
                found = value.grad if gradient else value.data
                assert found is not None
                parts.append((found.T if found.dim() == 2 else found).flatten())
    return torch.cat(parts)


def test_forward_is_that_of_a_plain_network() -> None:
    stack = StackedNetwork(SIZES, (3, 4))
    inputs = torch.randn(2, 7, 5)
    for member in range(2):
        assert torch.allclose(stack.forward(inputs)[member], twin(stack, member)(inputs[member]), atol=1e-6)
    few = stack.one_each(inputs[:, 0].numpy())
    assert np.allclose(few, stack.forward(inputs)[:, 0].numpy(), atol=1e-6)


def test_backward_is_autograd() -> None:
    stack = StackedNetwork(SIZES, (3, 4, 5))
    inputs, outer = torch.randn(3, 7, 5), torch.randn(3, 7, 3)
    stack.backward(stack.activations(inputs), outer)
    for member in range(3):
        plain = twin(stack, member)
        (plain(inputs[member]) * outer[member]).sum().backward()
        assert torch.allclose(stack.gradient[member], flattened(plain, gradient=True), atol=1e-5)


def test_initial_values_have_the_bounds_of_linear_layers() -> None:
    stack = StackedNetwork((100, 50, 4), range(20))
    weight, bias = stack.layers[0]
    for values in (weight, bias):
        assert float(values.abs().max()) <= 0.1
        assert float(values.abs().max()) > 0.098
        assert abs(float(values.mean())) < 0.005
    assert not torch.equal(stack.flat[0], stack.flat[1])


def test_equal_seeds_give_equal_members_wherever_they_stand() -> None:
    assert torch.equal(StackedNetwork(SIZES, (1, 2, 3)).flat[2], StackedNetwork(SIZES, (3,)).flat[0])


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_adam_is_torchs_with_each_member_clipped_by_itself(scale: float) -> None:
    stack = StackedNetwork(SIZES, (1, 2))
    plain = [twin(stack, member) for member in range(2)]
    ours = StackedAdam(stack, AdamSettings(0.01))
    theirs = [torch.optim.Adam(module.parameters(), lr=0.01) for module in plain]
    for _ in range(12):
        inputs, outer = torch.randn(2, 4, 5), torch.randn(2, 4, 3) * scale
        stack.backward(stack.activations(inputs), outer)
        ours.step()
        for member in range(2):
            theirs[member].zero_grad()
            (plain[member](inputs[member]) * outer[member]).sum().backward()
            nn.utils.clip_grad_norm_(plain[member].parameters(), 10.0)
            theirs[member].step()
    for member in range(2):
        assert torch.allclose(stack.flat[member], flattened(plain[member], gradient=False), atol=1e-4)


def test_a_member_learns_alike_beside_others() -> None:
    alone, beside = StackedNetwork(SIZES, (7,)), StackedNetwork(SIZES, (5, 6, 7))
    optimisers = [StackedAdam(alone, AdamSettings()), StackedAdam(beside, AdamSettings())]
    for _ in range(20):
        inputs, outer = torch.randn(3, 4, 5), torch.randn(3, 4, 3)
        alone.backward(alone.activations(inputs[2:]), outer[2:])
        beside.backward(beside.activations(inputs), outer * torch.tensor([100.0, -3.0, 1.0])[:, None, None])
        for optimiser in optimisers:
            optimiser.step()
    assert torch.allclose(alone.flat[0], beside.flat[2], atol=1e-6)
