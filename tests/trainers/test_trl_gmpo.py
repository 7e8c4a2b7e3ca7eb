from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from tests.trainers.trl_host import record_batches, trainer


def gmpo_trainer(output: Path, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL warns of everything experimental
        from trl.experimental.gmpo import GMPOConfig

        from nser.trainers.trl.gmpo import ReplayGMPOTrainer

        return trainer(output, kind=ReplayGMPOTrainer, config=GMPOConfig, **settings)


def test_replayed_rows_have_one_weighted_advantage_each(tmp_path: Path) -> None:
    host = gmpo_trainer(tmp_path, max_steps=6)
    batches = record_batches(host)
    host.train()
    assert [len(batch["advantages"]) for batch in batches] == [8, 12, 12, 12, 12, 12]
    assert all(batch["advantages"].ndim == 1 for batch in batches)
    assert host._replayer.correction.level == "sequence"
    assert torch.isfinite(torch.tensor([host.state.log_history[-1]["train_loss"]])).all()
