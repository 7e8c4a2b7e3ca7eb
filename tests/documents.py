"""What stands in the pages that people read: fenced blocks, and their commands run as a shell would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Block(NamedTuple):
    """A fenced block: the word behind its fence, and its text."""

    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Lines without their comments."""
        return [found for line in self.text.splitlines() if (found := re.sub(r"(^|\s)#.*", "", line).strip())]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(*one) for one in found]


def run(command: str, folder: Path, **environment: str) -> str:
    """Output of a command line in a folder, `nser` and `python` being those of this interpreter; fails with it."""
    programs = folder / ".programs"
    if not programs.exists():
        programs.mkdir()
        for name, arguments in (("python", ""), ("nser", " -P -m nser")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
            program.chmod(0o755)
    given = {**os.environ, **environment, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
