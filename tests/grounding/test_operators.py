from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nser.grounding.operators import (
    GODEL,
    LUKASIEWICZ,
    PRODUCT,
    Binary,
    Logic,
    godel_implies,
    goguen,
    kleene_dienes,
    lukasiewicz_implies,
    reichenbach,
    yager,
)

LOGICS = [PRODUCT, GODEL, LUKASIEWICZ, yager(1.0), yager(3.0)]
degree = st.floats(0, 1, width=32)


@pytest.mark.parametrize("logic", LOGICS, ids=lambda logic: logic.name)
@given(a=degree, b=degree, c=degree)
def test_laws_of_t_norms(logic: Logic, a: float, b: float, c: float) -> None:
    def both(*values: float) -> float:
        return float(logic.all_of(torch.tensor(values, dtype=torch.float64), 0))

    def either(*values: float) -> float:
        return float(logic.any_of(torch.tensor(values, dtype=torch.float64), 0))

    assert both(a, b) == pytest.approx(both(b, a))
    assert both(a, 1.0) == pytest.approx(a, abs=1e-6)
    assert either(a, 0.0) == pytest.approx(a, abs=1e-6)
    assert both(a, b, c) == pytest.approx(both(both(a, b), c), abs=1e-6)
    assert either(a, b) == pytest.approx(1 - both(1 - a, 1 - b), abs=1e-6)
    assert both(min(a, c), b) <= both(max(a, c), b) + 1e-6
    assert 0 <= both(a, b, c) <= min(a, b, c) + 1e-6


@pytest.mark.parametrize("implies", [reichenbach, lukasiewicz_implies, goguen, godel_implies, kleene_dienes])
def test_implications_are_right_on_plain_truth(implies: Binary) -> None:
    a, b = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert implies(a, b).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("logic", LOGICS, ids=lambda logic: logic.name)
def test_gradients_are_finite_at_the_corners(logic: Logic) -> None:
    corners = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], requires_grad=True)
    (logic.all_of(corners, 1).sum() + logic.any_of(corners, 1).sum()).backward()
    assert corners.grad is not None
    assert torch.isfinite(corners.grad).all()


def test_yager_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="expected p >= 1"):
        yager(0.5)
