"""Replay in OpenRLHF: old experiences join the fresh ones once advantages are computed.

With the correction "decoupled" `action_log_probs` of replayed rows are those of the present policy. The truncated
importance weight is OpenRLHF's own if it is switched on; otherwise it is multiplied into the advantages here:

    --algo.advantage.is_correction_level token --algo.advantage.is_correction_mode clip
    --algo.advantage.is_correction_threshold 0 2

OpenRLHF's figures `rollout/reward_mean` and the like count replayed rows too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from nser.rollouts import Replayed, RolloutError
from nser.trainers.offpolicy import importance_weights
from nser.trainers.openrlhf.experiences import apply_weights, from_experience, to_experience
from nser.trainers.replayer import Replayer, Score, Store

logger = logging.getLogger(__name__)


class ReplayExperiences:
    """Put before OpenRLHF's `RemoteExperienceMaker` in a class, or use ``with_replay``.

    A version is one call, for OpenRLHF updates once for each; counting goes on from the version of the store. Save
    the store beside OpenRLHF's checkpoints with ``replayer.save``.
    """

    replayer: Replayer
    tokenizer: Any
    strategy: Any
    actor_model_group: Any
    initial_model_group: Any
    critic_model_group: Any
    _version: int | None = None

    def compute_advantages_and_returns(self, experiences: list[Any]) -> list[Any]:
        """OpenRLHF's, with replayed experiences behind the fresh ones, as large as the first of these."""
        experiences = super().compute_advantages_and_returns(experiences)  # type: ignore[misc]
        if self.critic_model_group is not None:
            raise RolloutError("critic", "a critic", "an estimator without", "Use group_norm, rloo, dr_grpo, …")
        store = self.replayer.store
        if self._version is None and not len(store):
            self._version = store.version
        else:  # also after a store was restored, whose version has been trained on
            self._version = store.version + 1
        fresh = [rollout for one in experiences for rollout in from_experience(one, self._version)]
        replays = self.replayer.step(fresh, self._version)
        logger.info("replay: %s", self.replayer.figures(replays))
        size = len(experiences[0].sequences)
        return [*experiences, *(one for replayed in replays for one in self._old(replayed, experiences[0], size))]

    def _old(self, replayed: Replayed, like: Any, size: int) -> list[Any]:
        """Replayed rollouts in micro-batches of ``size`` rows, corrected and weighted."""
        correction = self.replayer.correction
        cuts = range(0, len(replayed), size)
        weights = [replayed.weights[cut : cut + size] for cut in cuts]
        old = [to_experience(replayed.rollouts[cut : cut + size], like, self.tokenizer.pad_token_id) for cut in cuts]
        if like.base_action_log_probs is not None:
            for one, logps in zip(old, self._logps(self.initial_model_group, old), strict=True):
                one.base_action_log_probs = logps
        if correction.kind == "decoupled":
            for one, logps in zip(old, self._logps(self.actor_model_group, old), strict=True):
                behavior, one.action_log_probs = one.action_log_probs, logps
                if like.rollout_log_probs is None:
                    one.advantages = one.advantages * importance_weights(logps, behavior, one.action_mask, correction)
        return [apply_weights(one, weight) for one, weight in zip(old, weights, strict=True)]

    def _logps(self, group: Any, experiences: Sequence[Any]) -> list[Tensor]:
        """Log-probs of all actions under the model of a group of workers."""
        args = self.strategy.args
        refs = self._dispatch_forward(  # type: ignore[attr-defined]
            group,
            args.train.colocate_all or args.train.colocate_actor_ref,
            sequences=[one.sequences for one in experiences],
            action_mask=[one.action_mask for one in experiences],
            attention_mask=[one.attention_mask for one in experiences],
        )
        copies = args.ds.ring_attn_size * args.ds.tensor_parallel_size
        found: list[Tensor] = self._flatten_results(refs, copies)  # type: ignore[attr-defined]
        return found


def with_replay(maker_class: type, store: Store, score: Score | None = None, multiple_of: int = 1) -> type:
    """``maker_class`` (OpenRLHF's `RemoteExperienceMaker`) with replay out of ``store``.

    ``score``: rules over rollouts, (n) → (n,) in [0, 1]. ``multiple_of``: OpenRLHF hands micro-batches to its workers
    in turn and needs one for each: pass `rollout.micro_batch_size` times the number of data-parallel actors.

    Raises ``RolloutError`` for the composition "separate": OpenRLHF trains once on all it gets.
    """
    if store.settings.composition != "anchored":
        raise RolloutError("composition", store.settings.composition, "anchored", "Use another preset.")
    name = f"Replay{maker_class.__name__}"
    return type(name, (ReplayExperiences, maker_class), {"replayer": Replayer(store, score, multiple_of)})
