"""Reads columns from a batch of steps, one block of rows for each kind, and checks the values once for all.

Rows are predicate-major, [C, T]: what a kernel multiplies lies together, and one call serves a whole block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nser.grounding.columns import Columns
from nser.grounding.comparison import Ranges, bounds, hold, margin
from nser.grounding.interpret import interpret
from nser.grounding.operators import Logic
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import ActionIs, Grounding, Vocabulary
from nser.rules.syntax import Atom, Comparison, Constant, Formula

Source = tuple[Atom, Grounding, tuple[str, ...]]


class Reader:
    """Degrees of the atoms, margins of the comparisons and degrees of everything else.

    Features that several comparisons read are computed once. Tensors of constants follow the device of the steps.
    """

    def __init__(
        self, columns: Columns, vocabulary: Vocabulary, logic: Logic, sharpness: float | None, ranges: Ranges
    ) -> None:
        self.columns = columns
        self.vocabulary = vocabulary
        self.logic = logic
        self.sharpness = sharpness
        self.ranges = ranges
        first, last = columns.atoms, columns.atoms + columns.comparisons
        self._atoms = [self._source(f) for f in columns.formulas[:first] if isinstance(f, Atom)]
        self._plain = [source for source in self._atoms if not isinstance(source[1], ActionIs)]
        taken = [
            function.actions.index(names[0]) for _, function, names in self._atoms if isinstance(function, ActionIs)
        ]
        self._taken = torch.tensor(taken, dtype=torch.int64)[:, None]  # [A′, 1], the last of the atoms
        comparisons = [f for f in columns.formulas[first:last] if isinstance(f, Comparison)]
        features = list(dict.fromkeys(c.feature for c in comparisons))
        self._features = [self._source(feature) for feature in features]
        self.others: tuple[Formula, ...] = columns.formulas[last:]
        self._constants = _Constants(comparisons, features, len(columns.learnable), self._slope)
        self._on: dict[torch.device, _Constants] = {}

    def atoms(self, steps: Steps) -> Tensor:
        """[A, T] degrees; raises `DegreeError` naming predicate and row for one outside [0, 1]."""
        if not self._atoms:
            return steps.observations.new_zeros(0, len(steps))
        degrees = torch.stack(self.atom_rows(steps))
        self.check_degrees(degrees, steps)
        return degrees

    def atom_rows(self, steps: Steps) -> list[Tensor]:
        """A rows [T], unchecked: see `check_degrees`."""
        rows = self._rows(self._plain, steps, self.vocabulary.degrees)
        if len(self._taken):
            # One comparison for all actions that rules name.
            taken = steps.actions.reshape(1, len(steps)) == self._taken.to(steps.device)
            rows.extend(taken.to(steps.dtype).unbind())
        return rows

    def check_degrees(self, degrees: Tensor, steps: Steps) -> None:
        """Raise the `DegreeError` of whichever atom gave one of these [A, T] that is none."""
        if not degrees.numel():
            return
        low, high = torch.aminmax(degrees.detach())  # NaN goes through, and fails both comparisons
        if not (low >= 0 and high <= 1):
            for atom, _, _ in self._atoms:
                self.vocabulary.degrees(atom, steps)

    def margins(self, steps: Steps, thresholds: Tensor, out: Tensor | None = None) -> Tensor:
        """[M, T] slope · (value − threshold): above 0 where the comparison holds; see `hold`.

        The slope is the sharpness over the feature's range, or 1 for crisp comparisons, and below 0 for `<`.
        """
        constants = self.constants(steps.device)
        if not self._features:
            return steps.observations.new_zeros(0, len(steps))
        values = torch.stack(self._rows(self._features, steps, self.vocabulary.numbers))  # [F, T]
        self._check_numbers(values, steps)
        at = constants.at(thresholds)[:, None]
        if out is not None:
            # In place: what a sweep would allocate for each chunk costs more in page faults than in arithmetic.
            torch.index_select(values, 0, constants.feature, out=out)
            return out.sub_(at).mul_(constants.slopes)
        if not constants.own_feature_each:
            values = values.index_select(0, constants.feature)  # [M, T]
        return (values - at) * constants.slopes

    def learns_numbers(self, steps: Steps) -> bool:
        """Whether a gradient leads through a numeric feature, found by asking for one row."""
        rows = self._rows(self._features, steps[:1], self.vocabulary.numbers) if torch.is_grad_enabled() else []
        return any(row.requires_grad for row in rows)

    def _check_numbers(self, values: Tensor, steps: Steps) -> None:
        """Raise the `DegreeError` of whichever feature gave one of these [F, T] that is not finite."""
        if not values.numel():
            return
        low, high = torch.aminmax(values.detach())  # NaN goes through
        if not (torch.isfinite(low) and torch.isfinite(high)):
            for atom, _, _ in self._features:
                self.vocabulary.numbers(atom, steps)

    def hold(self, margins: Tensor, device: torch.device) -> Tensor:
        """[M, T] degrees to which comparisons with these margins hold."""
        if self.sharpness is not None:
            return torch.sigmoid(margins)
        closed = self.constants(device).closed
        return torch.where(closed, margins >= 0, margins > 0).to(margins.dtype)

    def other_rows(self, steps: Steps, thresholds: Tensor) -> list[Tensor]:
        """Rows [T] of degrees of the formulas that are neither atom nor comparison."""

        def leaf(item: Atom | Comparison) -> Tensor:
            if isinstance(item, Atom):
                return self.vocabulary.degrees(item, steps)
            threshold: Tensor | float = item.threshold.value
            if item.threshold.learnable:
                threshold = thresholds[int(item.threshold.value)]
            values = self.vocabulary.numbers(item.feature, steps)
            width = self._width(item.feature)
            return hold(margin(values, item.operator, threshold, self.sharpness, width), self.sharpness)

        return [interpret(formula, leaf, steps.episodes, self.logic) for formula in self.others]

    def constants(self, device: torch.device) -> _Constants:
        """The tensors that belong to the comparisons, on the device of the steps."""
        if device not in self._on:
            self._on[device] = self._constants.to(device)
        return self._on[device]

    def bounds(self, feature: Atom) -> tuple[float, float] | None:
        """The feature's range, where it is known."""
        return bounds(feature, self.vocabulary.signature.predicates[feature.predicate], self.ranges)

    def _width(self, feature: Atom) -> float:
        known = self.bounds(feature)
        return known[1] - known[0] if known else 1.0

    def _slope(self, item: Comparison) -> float:
        size = 1.0 if self.sharpness is None else self.sharpness / max(self._width(item.feature), 1e-12)
        return size if item.operator.startswith(">") else -size

    def _source(self, atom: Atom) -> Source:
        constants = tuple(term.name for term in atom.args if isinstance(term, Constant))
        return atom, self.vocabulary.predicates[atom.predicate].function, constants

    @staticmethod
    def _rows(sources: Sequence[Source], steps: Steps, checked: Callable[[Atom, Steps], Tensor]) -> list[Tensor]:
        dtype = steps.dtype
        shape = (len(steps),)
        rows = []
        for atom, function, constants in sources:
            row = function(steps, *constants)
            if row.shape != shape:
                row = checked(atom, steps)  # says what is wrong with it
            rows.append(row if row.dtype == dtype else row.to(dtype))
        return rows


class _Constants:
    """What comparisons are made of: which feature, slope, whether closed, and where the threshold comes from."""

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        features: Sequence[Atom],
        learnable: int,
        slope: Callable[[Comparison], float],
    ) -> None:
        place = {feature: i for i, feature in enumerate(features)}
        # A learnable comparison holds its number, a fixed one stands behind them all.
        fixed = [c.threshold.value for c in comparisons if not c.threshold.learnable]
        behind = iter(range(learnable, learnable + len(fixed)))
        source = [int(c.threshold.value) if c.threshold.learnable else next(behind) for c in comparisons]
        self.own_feature_each = [place[c.feature] for c in comparisons] == list(range(len(features)))
        self.all_fixed = learnable == 0
        self.feature = torch.tensor([place[c.feature] for c in comparisons], dtype=torch.int64)  # [M]
        self.source = torch.tensor(source, dtype=torch.int64)  # [M]
        self.fixed = torch.tensor(fixed, dtype=torch.float32)
        self.slopes = torch.tensor([slope(c) for c in comparisons], dtype=torch.float32)[:, None]  # [M, 1]
        self.closed = torch.tensor([c.operator.endswith("=") for c in comparisons], dtype=torch.bool)[:, None]
        self.learns = torch.tensor([c.threshold.learnable for c in comparisons], dtype=torch.bool)  # [M]

    def to(self, device: torch.device) -> _Constants:
        """The same on another device."""
        copy = object.__new__(_Constants)
        for name, value in vars(self).items():
            setattr(copy, name, value.to(device) if isinstance(value, Tensor) else value)
        return copy

    def at(self, thresholds: Tensor) -> Tensor:
        """[M] the threshold of each comparison."""
        if self.all_fixed:
            return self.fixed
        return torch.cat([thresholds.to(self.fixed.device), self.fixed]).index_select(0, self.source)
