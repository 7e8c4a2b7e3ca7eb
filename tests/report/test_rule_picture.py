"""The picture of a rule graph: boxes that can be read, whatever hangs together."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from nser.report.rule_picture import _figure, box_places, box_sizes, in_page
from nser.rules.graph import edges
from nser.rules.parse import parse_rules
from nser.rules.syntax import MAX_NAME, Rule


def many(count: int) -> tuple[Rule, ...]:
    """Rules in groups of four that share a condition, with names of every length."""
    lines = [
        f"rule {'n' * (1 + 7 * i % (MAX_NAME - 4))}{i:03d}: forall t in step: facing(t, key{i // 4}) & "
        f"action_is(t, act{i % 4}) -> {'~' if i % 4 == 3 else ''}good(t)"
        for i in range(count)
    ]
    return parse_rules("\n".join(lines), strict=True).rules


@pytest.mark.parametrize("count", [1, 2, 7, 30, 120])
def test_boxes_do_not_lie_on_each_other(count: int) -> None:
    rules = many(count)
    places, sizes = box_places(rules, edges(rules)), box_sizes(rules)
    room = np.abs(places[:, None] - places[None]) - (sizes[:, None] + sizes[None]) / 2
    overlap = (room < 0).all(axis=-1) & ~np.eye(count, dtype=bool)
    assert not overlap.any()


def test_a_box_is_as_large_as_it_was_measured_and_nothing_is_cut_off() -> None:
    rules = many(9)
    figure = _figure(rules, edges(rules))
    figure.savefig(io.BytesIO(), format="png", dpi="figure")
    for label, (width, height) in zip(figure.axes[0].texts, box_sizes(rules), strict=True):
        patch = label.get_bbox_patch()
        assert patch is not None
        drawn = patch.get_window_extent()
        assert drawn.width / figure.dpi <= width + 0.05, label.get_text()
        assert drawn.height / figure.dpi <= height + 0.05
        assert min(drawn.x0, drawn.y0) >= 0
        assert (drawn.x1, drawn.y1) <= (figure.bbox.width, figure.bbox.height)


def test_rules_that_share_lie_nearer_than_rules_that_do_not() -> None:
    rules = many(12)
    places = box_places(rules, edges(rules))
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    same = np.arange(12)[:, None] // 4 == np.arange(12) // 4
    assert distance[same & ~np.eye(12, dtype=bool)].mean() < distance[~same].mean()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_graph_without_lines_is_drawn(count: int) -> None:
    rules = many(12)[::4][:count]
    assert edges(rules) == ()
    assert set(re.findall(r'"#rule-(\w+)"', in_page(rules, ()))) == {rule.name for rule in rules}
