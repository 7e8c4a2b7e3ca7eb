"""Pictures of a terminal, `nser rules show` and `nser rules explain --slot` of a run, as SVG, and of its report.

    nser train MiniGrid-DoorKey-6x6-v0 --explore rules --seed 1 --steps 20000 --name pictures
    python examples/pictures/draw.py runs/pictures

The slot explained is the one that the newest rules score highest. The report's picture wants a Chromium.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

from nser.cli import rules_explain, rules_show
from nser.report.page import write_report
from nser.runs.directory import RunDirectory
from nser.runs.explain import explain_slot, stored_buffer

HERE = Path(__file__).parent
WINDOW = (1200, 1500)


def best_slot(path: Path) -> int:
    run = RunDirectory.open(path)
    (buffer, vocabulary), ruleset = stored_buffer(run), run.newest_rules()
    if ruleset is None or vocabulary is None:
        raise SystemExit(f"{path} has no rules yet; train on")
    step = max(1, buffer.size() // 500)
    return max(range(0, buffer.size(), step), key=lambda slot: explain_slot(buffer, vocabulary, ruleset, slot).score)


def record(title: str) -> Console:
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text(f"$ {title}", style="bold cyan"))
    rules_show.out = rules_explain.out = console
    return console


def draw_report(run: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("found no chromium to draw the report with; install Debian's package of this name")
    size = ",".join(map(str, WINDOW))
    target = HERE / "report.png"
    page = write_report(RunDirectory.open(run)).resolve().as_uri()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size}"]
    subprocess.run([chromium, *flags, f"--screenshot={target}", page], check=True, capture_output=True)
    Image.open(target).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE).save(target, optimize=True)


def main(run: Path) -> None:
    slot = best_slot(run)
    for name, title in (
        ("show", f"nser rules show {run} --sort weight"),
        ("explain", f"nser rules explain {run} --slot {slot}"),
    ):
        console = record(title)
        if name == "show":
            rules_show.command(run, sort="weight", only=None, colour=True, as_json=False)
        else:
            rules_explain.command(run, slot=slot)
        svg = console.export_svg(title=f"nser rules {name}", unique_id=f"nser-{name}")
        # Without rich's fonts from the network the picture takes those of whoever looks at it.
        (HERE / f"rules_{name}.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))
    draw_report(run)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
