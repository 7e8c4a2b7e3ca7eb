"""More steps for a run that was to have fewer."""

from __future__ import annotations

import json
import shlex
import sys

from nser.files import write_text
from nser.jsons import read_json
from nser.runs.directory import RunDirectory
from nser.runs.errors import RunError


def extend(run: RunDirectory, steps: int) -> None:
    """Let a run end at `steps`, counted from its beginning; `resume` then takes those that are left.

    ε falls over the steps it fell over before, however long the run is now. What was changed is noted under
    `continued` in config.json. Raises `RunError` for fewer steps than the run has, and `WriteError`.
    """
    settings = run.settings()
    if steps < settings.steps:
        raise RunError(
            run.path,
            f"found {steps:,} steps, expected more than the {settings.steps:,} of {run.path}: they count from its "
            "beginning; a run that was stopped can be used as it stands",
        )
    if steps == settings.steps:
        return
    longer = settings.model_copy(
        update={"steps": steps, "exploration_fraction": settings.exploration_fraction * settings.steps / steps}
    )
    content = read_json(run.config)
    told = {"from": settings.steps, "to": steps, "command": shlex.join(["nser", *sys.argv[1:]])}
    content = {
        **content,
        "settings": longer.model_dump(mode="json"),
        "continued": [*content.get("continued", []), told],
    }
    write_text(run.config, json.dumps(content, indent=2) + "\n")
