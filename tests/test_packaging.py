"""The wheel holds what the tree holds, under the names that users import."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKED = ("rules", "grounding", "envs")


def tree() -> set[str]:
    """Every file of the package, by the name it has once installed."""
    files = {
        Path("nser") / file.relative_to(ROOT / "nser")
        for file in (ROOT / "nser").rglob("*")
        if file.relative_to(ROOT / "nser").parts[0] not in LINKED
    }
    for folder in LINKED:
        files |= {Path("nser") / file.relative_to(ROOT) for file in (ROOT / folder).rglob("*")}
    kept = {".py", ".lark", ".rules", ".html", ".css", ".js", ".typed", ".txt", ".md", ".j2"}
    return {str(file) for file in files if file.suffix in kept or file.name == "py.typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    # A copy without the links, as an archive of the sources may well be.
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        file = ROOT / name
        if file.is_file() and not file.is_symlink():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_tree(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == tree()


def test_the_links_are_relative_and_whole() -> None:
    for folder in LINKED:
        link = ROOT / "nser" / folder
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{folder}"


def test_every_package_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {str(Path(name).parent).replace("/", ".") for name in tree() if name.endswith("/__init__.py")}
    assert listed == found


def test_no_module_is_imported_by_a_bare_or_relative_name() -> None:
    for file in (file for folder in ("nser", "tests", "examples", *LINKED) for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file} imports by a relative name"
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & set(LINKED), f"{file} imports {names}"
