"""OpenRLHF's real `Experience`, shifted by one, and its real experience maker with a stand-in for two imports."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rollouts import RolloutError, RolloutStore, store_preset
from nser.trainers.openrlhf import apply_weights, concat, from_experience, to_experience, with_replay
from tests.trainers.rollout_makers import rollout, rollouts, same

pytest.importorskip("openrlhf")
PAD = 0


def experience(rows: int = 2, seed: int = 0, **extra: Any) -> Any:
    """A batch with advantages: prompts of 2, responses of 1 to 4, a tool's token in the middle of long ones."""
    from openrlhf.trainer.ppo_utils.experience import Experience

    rng = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 5, (rows,), generator=rng) + 2
    attention = (torch.arange(6) < lengths.unsqueeze(1)).long()  # [B, 6]
    sequences = torch.randint(5, 99, (rows, 6), generator=rng) * attention
    action = attention[:, 1:].bool()
    action[:, 0] = False
    action[lengths > 4, 2] = False
    advantages = torch.randn(rows, 1, generator=rng) * action
    fields = {
        "sequences": sequences,
        "attention_mask": attention,
        "action_mask": action,
        "action_log_probs": -torch.rand(rows, 5, generator=rng) * action,
        "advantages": advantages,
        "returns": advantages,
        "rewards": torch.rand(rows, generator=rng),
        "response_length": torch.tensor([int(np.ptp(np.flatnonzero(row)) + 1) for row in action.numpy()]),
        "total_length": lengths.float(),
        "truncated": torch.zeros(rows, dtype=torch.bool),
        "index": list(range(rows)),
        "prompts": [f"question {row}" for row in range(rows)],
        "labels": ["42"] * rows,
        "images": [None] * rows,
        "mm_train_inputs": [None] * rows,
        "info": {"reward": torch.rand(rows, generator=rng)},
    }
    return Experience(**(fields | extra))


def test_the_shift_is_right_for_the_log_probs_of_a_model() -> None:
    """Log-probs as `Actor.forward` gives them; the rollout's are those of its own tokens, looked up one by one."""
    rng = torch.Generator().manual_seed(1)
    table = torch.randn(100, 100, generator=rng).log_softmax(-1)  # next token given this one
    fresh = experience(3, seed=3)
    logits = table[fresh.sequences]  # [B, T, 100]
    following = torch.roll(fresh.sequences, -1, 1)
    logps = logits.gather(2, following.unsqueeze(2)).squeeze(2)[:, :-1]
    fresh.action_log_probs = logps * fresh.action_mask
    for one in from_experience(fresh, 0):
        before = int(one.prompt_ids[-1])
        for token, trained, logp in zip(one.response_ids, one.response_mask, one.behavior_logps, strict=True):
            assert logp == (table[before, int(token)].item() if trained else 0.0)
            before = int(token)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4))
def test_experiences_come_back_bit_for_bit(seed: int, rows: int) -> None:
    fresh = experience(rows, seed)
    back = to_experience(from_experience(fresh, 5), fresh, PAD)
    width = back.sequences.shape[1]  # no wider than the longest
    for name, value in vars(fresh).items():
        found = getattr(back, name)
        if name == "index":
            assert found == [-1] * rows
        elif isinstance(value, torch.Tensor):
            cut = value[:, : width - (5 - value.shape[1]) - 1] if value.ndim == 2 and value.shape[1] == 5 else value
            expected = cut[:, :width] if value.ndim == 2 and value.shape[1] == 6 else cut
            assert found.dtype == value.dtype
            assert torch.equal(found, expected), name
        elif name == "info":
            assert torch.equal(found["reward"], value["reward"])
        else:
            assert found == value, name


@settings(max_examples=40, deadline=None)
@given(made=st.lists(rollouts(), min_size=1, max_size=5))
def test_rollouts_come_back(made: list[Any]) -> None:
    back = from_experience(to_experience(made, experience(), PAD), 0)
    for left, right in zip(made, back, strict=True):
        assert left.group == right.group
        assert same(left, _with_task(right, left.task))


def _with_task(one: Any, task: str) -> Any:
    return rollout(**{**{name: getattr(one, name) for name in one.__dataclass_fields__}, "task": task})


def test_experiences_of_other_lengths_join() -> None:
    fresh = experience(2)
    made = [rollout(7, 4, 9), rollout(8, 2, 1)]
    both = concat([fresh, to_experience(made, fresh, PAD)], PAD)
    assert both.sequences.shape == (4, 13)
    assert both.action_mask.shape == both.advantages.shape == (4, 12)
    found = from_experience(both, 0)
    assert all(same(left, _with_task(right, left.task)) for left, right in zip(made, found[2:], strict=True))
    assert all(same(left, right) for left, right in zip(from_experience(fresh, 0), found[:2], strict=True))


def test_weights_multiply_advantages_alone() -> None:
    fresh = experience(2)
    weighted = apply_weights(fresh, [0.5, 3.0])
    assert torch.equal(weighted.advantages, fresh.advantages * torch.tensor([[0.5], [3.0]]))
    assert weighted.action_log_probs is fresh.action_log_probs


def test_what_does_not_fit_is_said() -> None:
    fresh = experience()
    left_padded = experience(attention_mask=torch.tensor([[0, 1, 1, 1, 1, 1]] * 2))
    cases: list[tuple[Any, str]] = [
        (lambda: from_experience(experience(advantages=None), 0), "advantages: found None"),
        (lambda: from_experience(experience(mm_train_inputs=[{"pixels": 1}, None]), 0), "images"),
        (lambda: from_experience(left_padded, 0), "padding on the left"),
        (lambda: to_experience([], fresh, PAD), "at least one"),
        (lambda: to_experience([rollout(0, 0, 2)], fresh, PAD), "prompt_ids: found none"),
        (lambda: concat([fresh, experience(values=torch.zeros(2, 5))], PAD), "values: found None in some"),
        (lambda: concat([], PAD), "at least one"),
    ]
    for call, message in cases:
        with pytest.raises(RolloutError, match=message):
            call()


# The maker.


@contextmanager
def maker_module() -> Iterator[Any]:
    """OpenRLHF's real `experience_maker.py`, without deepspeed and the launcher of its workers."""
    import openrlhf

    root = Path(openrlhf.__file__).parent
    names = ["openrlhf.models", "openrlhf.trainer.ray", "openrlhf.trainer.ray.launcher", "openrlhf.utils", "deepspeed"]
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("openrlhf", "deepspeed")}
    for name in names:
        module = ModuleType(name)
        module.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
    sys.modules["openrlhf.trainer.ray.launcher"].RayActorGroup = object  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch and OpenRLHF say at import
            yield importlib.import_module("openrlhf.trainer.ppo_utils.experience_maker")
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in ("openrlhf", "deepspeed")]:
            del sys.modules[name]
        sys.modules.update(before)


@pytest.fixture(scope="module")
def maker_class() -> Iterator[type]:
    with maker_module() as module:
        yield module.RemoteExperienceMaker


def maker(cls: type, **changes: Any) -> Any:
    """An experience maker with replay whose workers are functions; the actor has drifted from what generated."""
    args = SimpleNamespace(
        algo=SimpleNamespace(advantage=SimpleNamespace(estimator="group_norm", gamma=1.0, no_std_norm=False)),
        rollout=SimpleNamespace(n_samples_per_prompt=2),
        reward=SimpleNamespace(clip_range=None, overlong_buffer_len=None, stop_properly_penalty_coef=None),
        train=SimpleNamespace(colocate_all=False, colocate_actor_ref=False),
        ds=SimpleNamespace(ring_attn_size=1, tensor_parallel_size=1),
    )
    settings = store_preset("nser", **({"warm_up": 0, "ratio": 0.5} | changes))
    replaying = with_replay(cls, RolloutStore(settings))

    class Local(replaying):  # type: ignore[misc, valid-type]
        def _dispatch_forward(self, group: Any, sync: bool, **given: Any) -> Any:
            rows = zip(given["sequences"], given["action_mask"], strict=True)
            return [group(sequences, mask) for sequences, mask in rows]

        def _flatten_results(self, found: Any, copies: int) -> Any:
            return found

    tokenizer, weight = SimpleNamespace(pad_token_id=PAD), SimpleNamespace(value=0.0)
    return Local(actor, None, None, None, weight, SimpleNamespace(args=args), tokenizer)


def actor(sequences: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Log-probs under the present policy, [B, T − 1]."""
    return -(1.0 + torch.sin(sequences[:, 1:].float())) * mask


def made(seed: int, **extra: Any) -> list[Any]:
    batches = [experience(4, seed, kl=torch.zeros(4, 5), advantages=None, returns=None, **extra)]
    batches[0].info = {
        "reward": batches[0].rewards.clone(),
        "group_reward_std": torch.zeros(4),
        "return": torch.zeros(4),
    }
    return batches


def test_the_makers_fresh_experiences_stay_and_old_ones_follow(maker_class: type) -> None:
    host = maker(maker_class)
    plain = host.compute_advantages_and_returns(made(1))
    assert len(plain) == 1
    alone = maker(maker_class).compute_advantages_and_returns(made(2))
    fresh, old = host.compute_advantages_and_returns(made(2))
    for name in ("sequences", "action_mask", "action_log_probs", "advantages", "returns", "rewards"):
        assert torch.equal(getattr(fresh, name), getattr(alone[0], name)), name
    assert len(old.sequences) == 2
    born = {one.key: one for one in from_experience(plain[0], 0)}
    for one, row in zip(from_experience(old, 0), range(2), strict=True):
        original = born[one.key]
        width = len(original.prompt_ids) + len(original.response_ids) - 1
        proximal = actor(old.sequences, old.action_mask)[row, :width]
        assert torch.equal(old.action_log_probs[row, :width], proximal)
        gap = proximal[len(original.prompt_ids) - 1 :] - torch.from_numpy(original.behavior_logps.copy())
        mask = torch.from_numpy(original.response_mask.copy())
        expected = torch.tensor(original.advantage) * gap.exp().clamp(max=2.0) * mask
        found = old.advantages[row, len(original.prompt_ids) - 1 : width]
        assert torch.allclose(found, expected.float(), atol=1e-6)


def test_openrlhfs_own_correction_is_not_doubled(maker_class: type) -> None:
    """With `rollout_log_probs` in the batch the truncated weight is OpenRLHF's to apply."""
    host = maker(maker_class)
    engine = experience(4, 1).action_log_probs * 0.5
    host.compute_advantages_and_returns(made(1, rollout_log_probs=engine))
    _, old = host.compute_advantages_and_returns(made(2, rollout_log_probs=engine))
    assert torch.equal(old.action_log_probs, actor(old.sequences, old.action_mask))
    born = {one.key: one for one in host.replayer.store.rollouts(host.replayer.store.live_slots())}
    assert len(born) == 4
    for one in from_experience(old, 0):
        assert one.behavior_logps.tolist() == born[one.key].behavior_logps.tolist()
        assert one.advantage == born[one.key].advantage


def test_clip_keeps_the_log_probs_of_the_behaviour_policy(maker_class: type) -> None:
    host = maker(maker_class, correction="clip")
    host.compute_advantages_and_returns(made(1))
    _, old = host.compute_advantages_and_returns(made(2))
    born = {one.key: one for one in host.replayer.store.rollouts(host.replayer.store.live_slots())}
    assert all(one.behavior_logps.tolist() == born[one.key].behavior_logps.tolist() for one in from_experience(old, 0))


def test_a_restored_store_goes_on_with_the_next_version(maker_class: type, tmp_path: Path) -> None:
    host, resumed = maker(maker_class), maker(maker_class)
    host.compute_advantages_and_returns(made(1))
    host.replayer.save(tmp_path / "rollouts.npz")
    resumed.replayer.restore(tmp_path / "rollouts.npz")
    left, right = (one.compute_advantages_and_returns(made(2))[1] for one in (host, resumed))
    assert torch.equal(left.sequences, right.sequences)
    assert host.replayer.store.version == resumed.replayer.store.version == 1


def test_fresh_and_old_experiences_batch_together(maker_class: type) -> None:
    """OpenRLHF splits experiences into rows and batches these anew; keys must agree."""
    from openrlhf.trainer.ppo_utils.experience import make_experience_batch, split_experience_batch

    host = maker(maker_class)
    host.compute_advantages_and_returns(made(1))
    rows = [row for one in host.compute_advantages_and_returns(made(2)) for row in split_experience_batch(one)]
    assert len(make_experience_batch(rows).sequences) == 6


def test_what_the_maker_cannot_do_is_said(maker_class: type) -> None:
    with pytest.raises(RolloutError, match="composition: found separate"):
        maker(maker_class, composition="separate")
    host = maker(maker_class)
    host.critic_model_group = object()
    with pytest.raises(RolloutError, match="an estimator without"):
        host.compute_advantages_and_returns(made(1))
