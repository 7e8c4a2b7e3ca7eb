from __future__ import annotations

import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.replay.errors import LawError
from nser.replay.presets import NSER, PRESETS
from nser.study.conditions import CONDITIONS, OVERRIDES, Condition, condition_of
from nser.study.errors import OverrideError, StudyError, UnknownConditionError
from nser.study.settings import study_settings


def test_every_named_condition_is_itself() -> None:
    for name, condition in CONDITIONS.items():
        assert condition_of(name) is condition
        assert condition.name == name
        assert condition.summary
        condition.law()
        condition.induction()


def test_plain_conditions_have_the_law_of_their_preset() -> None:
    for name in ("uniform", "per", "freshper", "vlm-rb", "placebo"):
        assert condition_of(name).law() == PRESETS[name]
    for name in ("hand", "wrong", "induced", "induced+explore"):
        assert condition_of(name).law() == NSER
    unguarded = condition_of("wrong-unguarded").law()
    assert (unguarded.max_rule_share, unguarded.mix) == (1.0, 1.0)


def test_exploration_by_rules_needs_rules() -> None:
    for condition in CONDITIONS.values():
        if condition.explore == "rules":
            assert condition.rules != "none"
    assert condition_of("per+explore").law() == PRESETS["per"]
    assert condition_of("per+explore").rules == "induced"
    assert condition_of("hand+explore").rules == "hand"


def test_overrides_reach_the_law_and_the_induction() -> None:
    condition = condition_of(" induced+explore : correct=full, eta=2,guard=0.25,tau=inf,label=return,induce_every=500 ")
    assert condition.name == "induced+explore:correct=full,eta=2,guard=0.25,induce_every=500,label=return,tau=inf"
    law = condition.law()
    assert (law.eta, law.correct, law.max_rule_share, law.tau) == (2.0, "full", 0.25, math.inf)
    assert condition.induction().label == "return"
    assert condition.induce_every == 500
    assert condition_of(condition.name) == condition
    assert condition_of("wrong").judges
    assert not condition_of("wrong:audit=off").judges
    assert condition_of("wrong:audit=off").name == "wrong:audit=off"


@given(
    st.sampled_from(sorted(CONDITIONS)),
    st.fixed_dictionaries(
        {},
        optional={
            "eta": st.floats(0, 100),
            "share": st.floats(0, 1),
            "tau": st.floats(1, 1e6),
            "induce_every": st.integers(1, 10**6),
            "label": st.sampled_from(["progress", "return", "success", "advantage"]),
        },
    ),
)
def test_a_canonical_name_is_read_as_what_it_names(name: str, given_: dict[str, object]) -> None:
    text = f"{name}:{','.join(f'{key}={value}' for key, value in given_.items())}" if given_ else name
    condition = condition_of(text)
    assert condition_of(condition.name) == condition


def test_what_means_nothing_is_told_in_words() -> None:
    with pytest.raises(UnknownConditionError, match=r"'inducd'; did you mean induced\? expected one of uniform"):
        condition_of("inducd")
    with pytest.raises(OverrideError, match=r"found 'etta=2' in condition 'induced:etta=2', expected KEY=VALUE"):
        condition_of("induced:etta=2")
    with pytest.raises(OverrideError, match="expected a number for eta"):
        condition_of("induced:eta=much")
    with pytest.raises(OverrideError, match="expected a whole number for induce_every"):
        condition_of("induced:induce_every=0.5")
    with pytest.raises(OverrideError, match="expected at least 1 for induce_every"):
        condition_of("induced:induce_every=0")
    with pytest.raises(OverrideError, match="expected one of progress, return, success, advantage"):
        condition_of("induced:label=luck")
    with pytest.raises(OverrideError, match="expected on or off for audit"):
        condition_of("wrong:audit=maybe")
    with pytest.raises(OverrideError, match=r"a share in \[0, 1\]"):
        condition_of("placebo:boosted=2")
    with pytest.raises(LawError):
        condition_of("induced:eta=-1")


def test_settings_are_canonical_and_checked() -> None:
    settings = study_settings({"env": "E", "conditions": ["per", "induced:tau=9,eta=2", "per"], "ratios": [0.5, 0.5]})
    assert settings.conditions == ("per", "induced:eta=2,tau=9")
    assert settings.ratios == (0.5,)
    assert settings.seed_numbers == tuple(range(12))
    with pytest.raises(StudyError, match="found ratio 0"):
        study_settings({"env": "E", "ratios": [0]})
    with pytest.raises(StudyError, match="no model for it"):
        study_settings({"env": "E", "conditions": ["induced-llm"]})
    with pytest.raises(StudyError, match="found setting stepps, which is unknown; did you mean steps\\?"):
        study_settings({"env": "E", "stepps": 3})
    with pytest.raises(StudyError, match="found steps = 0: expected"):
        study_settings({"env": "E", "steps": 0})


def test_the_last_step_is_always_evaluated() -> None:
    assert study_settings({"env": "E", "steps": 10, "eval_every": 4}).eval_steps == (4, 8, 10)
    assert study_settings({"env": "E", "steps": 8, "eval_every": 4}).eval_steps == (4, 8)
    assert study_settings({"env": "E", "steps": 3, "eval_every": 4}).eval_steps == (3,)


def test_every_setting_behind_a_colon_is_a_field_and_is_explained() -> None:
    named = {"name", "summary", "replay", "rules", "explore"}
    assert [field.name for field in fields(Condition) if field.name not in named] == list(OVERRIDES)
    assert all(OVERRIDES.values())
