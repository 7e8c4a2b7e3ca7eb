"""One of two processes that train together; started by test_trl_ranks.py, prints what its rank saw as JSON.

RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=… python -m tests.trainers.trl_rank FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import torch

from nser.replay import preset
from nser.rollouts import StoreSettings
from tests.trainers.trl_host import graded, record_batches, trainer


def main(folder: Path) -> None:
    """Rank 1 is forgetful: its store holds 3 items, that of rank 0 all."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    # Groups of four span both ranks' rows in the order of ranks: 8 rows each, two prompts a rank.
    host = trainer(
        folder,
        replay=StoreSettings(law=preset("rollout-grpo"), ratio=1.0, max_share=0.5),
        reward=graded,
        max_steps=6,
        save_strategy="steps",
        save_steps=6,
        ddp_backend="gloo",
    )
    if rank == 1:
        draw = host.rollout_store.draw
        host.rollout_store.draw = lambda count: draw(min(count, 3))
    batches = record_batches(host)
    host.train()
    rollouts = host.rollout_store.rollouts(host.rollout_store.live_slots())
    seen = {
        "rows": [len(batch["completion_ids"]) for batch in batches],
        "items": [int(batch["num_items_in_batch"]) for batch in batches],
        "own_items": [int(batch["completion_mask"].sum()) for batch in batches],
        "groups": sorted({rollout.group for rollout in rollouts}),
        "rewards_fit": all(
            abs(rollout.reward - graded([rollout.response_ids.tolist()])[0]) < 1e-5 for rollout in rollouts
        ),
        "weights": float(sum(weight.double().sum() for weight in host.model.parameters())),
        "saved": sorted(path.name for path in (folder / "checkpoint-6").glob("rollouts_*")),
    }
    print("RANK " + json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
