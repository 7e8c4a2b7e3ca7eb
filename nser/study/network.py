"""The networks of all seeds of a stack as one batch of matrices, with gradients and Adam written out by hand.

`S` members, each a perceptron with ReLU between its layers. All parameters lie in one tensor [S, P], of which weights
and biases are views, so that a step of Adam is a handful of calls whatever the number of seeds. Each member's numbers
depend on its own seed and data alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class StackedNetwork:
    """`S` perceptrons of equal shape.

    sizes: numbers of units, from inputs to outputs
    seeds: one for each member; initial values are U(−1/√n, 1/√n) with n inputs of a layer, as `torch.nn.Linear` has it
    """

    def __init__(self, sizes: Sequence[int], seeds: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self._pairs = tuple(itertools.pairwise(self.sizes))
        self.flat = torch.stack([self._initial(seed) for seed in seeds])
        self.layers = self._views(self.flat)
        self.gradient = torch.zeros_like(self.flat)
        self._gradients = self._views(self.gradient)
        self._arrays = [(weight.numpy(), bias.numpy()) for weight, bias in self.layers]

    def __len__(self) -> int:
        return len(self.flat)

    def copy_from(self, other: StackedNetwork) -> None:
        """Take over the parameters of a stack of the same shape."""
        self.flat.copy_(other.flat)

    def forward(self, inputs: Tensor) -> Tensor:
        """[S, B, outputs] for inputs [S, B, inputs]."""
        return self.activations(inputs)[-1]

    def activations(self, inputs: Tensor) -> list[Tensor]:
        """The inputs and what each layer makes of them, [S, B, ·] each; hidden ones after their ReLU."""
        found = [inputs]
        for number, (weight, bias) in enumerate(self.layers):
            out = torch.baddbmm(bias, found[-1], weight)
            found.append(out if number == len(self.layers) - 1 else out.relu_())
        return found

    def backward(self, activations: Sequence[Tensor], outer: Tensor) -> None:
        """Write the gradient of a loss into `gradient`, given its gradient [S, B, outputs] by the outputs."""
        for number in reversed(range(len(self.layers))):
            inputs = activations[number]
            weight, bias = self._gradients[number]
            weight.copy_(torch.bmm(inputs.transpose(1, 2), outer))
            torch.sum(outer, 1, keepdim=True, out=bias)
            if number:
                outer = torch.bmm(outer, self.layers[number][0].transpose(1, 2)).mul_(inputs > 0)

    def one_each(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """[S, outputs] for one input [S, inputs] of each member; NumPy is quicker at so little."""
        values = inputs[:, None]
        for number, (weight, bias) in enumerate(self._arrays):
            values = np.matmul(values, weight)
            values += bias
            if number < len(self._arrays) - 1:
                np.maximum(values, 0, out=values)
        return values[:, 0]

    def _initial(self, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for inputs, outputs in self._pairs:
            bound = 1 / math.sqrt(inputs)
            for count in (inputs * outputs, outputs):
                parts.append((torch.rand(count, generator=generator) * 2 - 1) * bound)
        return torch.cat(parts)

    def _views(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weights [S, inputs, outputs] and biases [S, 1, outputs] of each layer, sharing the memory of `flat`."""
        found, place = [], 0
        for inputs, outputs in self._pairs:
            weight = flat[:, place : place + inputs * outputs].unflatten(1, (inputs, outputs))
            place += inputs * outputs
            found.append((weight, flat[:, None, place : place + outputs]))
            place += outputs
        return found


@dataclass(frozen=True)
class AdamSettings:
    """Of Adam (Kingma and Ba, 2015), with PyTorch's defaults; each member's gradient is clipped to `max_norm`."""

    learning_rate: float = 5e-4
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    max_norm: float = 10.0


class StackedAdam:
    """Adam for every member of a stack; what one member's gradient is changes no other member's step."""

    def __init__(self, network: StackedNetwork, settings: AdamSettings) -> None:
        self.network, self.settings = network, settings
        self.steps = 0
        self._mean = torch.zeros_like(network.flat)
        self._square = torch.zeros_like(network.flat)

    def step(self) -> None:
        """One step along the network's `gradient`, clipped member by member."""
        settings, gradient = self.settings, self.network.gradient
        first, second = settings.betas
        norms = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)  # [S, 1]
        gradient.mul_((settings.max_norm / (norms + 1e-6)).clamp_(max=1.0))
        self.steps += 1
        self._mean.lerp_(gradient, 1 - first)
        self._square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        bias = math.sqrt(1 - second**self.steps)
        scale = self._square.sqrt().div_(bias).add_(settings.epsilon)
        self.network.flat.addcdiv_(self._mean, scale, value=-settings.learning_rate / (1 - first**self.steps))
