"""Files of some kilobytes that ask for terabytes: refused from their headers, in a process with no memory to spare."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nser.arrays import read_arrays
from tests.hostile.mutations import DEEP, HEADERS, with_header, written, zipped
from tests.hostile.readers import READERS

SPARE = 2**28  # bytes that reading may take beyond what is loaded before
READ = """
import resource, sys
from pathlib import Path
from tests.hostile.readers import READERS
from nser.errors import NserError

bombs = Path(sys.argv[1])
readers = {reader.name: reader for reader in READERS}
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]), resource.RLIM_INFINITY))
for folder in sorted(bombs.iterdir()):
    try:
        readers[folder.name.split()[0]].read(folder)
        print(folder.name, "read", sep="\\t")
    except NserError as error:
        print(folder.name, error, sep="\\t")
"""

HUGE = np.zeros((2_000, 500))  # 8 MB, in an archive 8 kB


def repacked(content: bytes, change: Callable[[dict[str, bytes]], None], kind: int = zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    return zipped(members, kind)


def promising(content: bytes, size: int) -> bytes:
    """The same archive, whose directory tells of `size` bytes in every member."""
    stream = io.BytesIO(content)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("another", "")  # so that the directory is written anew
        for info in archive.infolist():
            info.file_size = size
    return stream.getvalue()


def with_text(name: str, **values: object) -> Callable[[dict[str, bytes]], None]:
    """Other values in the JSON text of an archive, `inner__key` for one in a text within it."""

    def change(members: dict[str, bytes]) -> None:
        text = json.loads(str(np.load(io.BytesIO(members[name]))))
        for key, value in values.items():
            outer, _, inner = key.partition("__")
            text[outer] = json.dumps({**json.loads(text[outer]), inner: value}) if inner else value
        members[name] = written(np.array(json.dumps(text)))

    return change


def bombs() -> dict[str, bytes]:
    """Content by a reader's name and what is wrong."""
    whole = {reader.name: reader.files()[reader.target] for reader in READERS}
    zeros = written(HUGE)
    lie = with_header(HEADERS[0])
    return {
        "npz sizes": promising(whole["npz"], 2**40),
        "npz header": repacked(whole["npz"], lambda m: m.update({"rewards.npy": lie})),
        "index zeros": repacked(whole["index"], lambda m: m.update({"birth.npy": zeros}), zipfile.ZIP_DEFLATED),
        "index header": repacked(whole["index"], lambda m: m.update({"signal.npy": lie})),
        "index capacity": repacked(whole["index"], with_text("scalars.npy", capacity=10**12)),
        "buffer capacity": repacked(whole["buffer"], with_text("scalars.npy", capacity=10**12)),
        "store zeros": repacked(whole["store"], lambda m: m.update({"shard.0.npy": zeros}), zipfile.ZIP_DEFLATED),
        "store capacity": repacked(whole["store"], with_text("scalars.npy", settings__capacity=10**12)),
        "store shards": repacked(whole["store"], with_text("scalars.npy", others__shard_bytes=10**13)),
        "checkpoint zeros": repacked(whole["checkpoint"], lambda m: m.update({"x.npy": zeros}), zipfile.ZIP_DEFLATED),
        **{f"{name} deep": DEEP.encode() for name in ("jsonl", "rollouts", "provenance", "config", "metrics", "study")},
        "cassette deep": b'{"reply": ' + DEEP.encode(),
        "cells deep": DEEP.encode() + b"\n",
        "jsonl digits": b"1" * 10**7,
        "rules long": b"rule a: forall t in step: " + b"~" * 10**7,
    }


def test_bombs_are_refused_in_little_memory(tmp_path: Path) -> None:
    targets = {reader.name: reader for reader in READERS}
    made = bombs()
    for name, content in made.items():
        reader = targets[name.split()[0]]
        for file, whole in (reader.files() | {reader.target: content}).items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)
    command = [sys.executable, "-c", READ, str(tmp_path), str(SPARE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = dict(line.split("\t") for line in done.stdout.splitlines())
    assert told.keys() == made.keys()
    # What is no line of metrics, no row and no provenance is passed over, and the rest is read.
    for name in ("metrics deep", "provenance deep"):
        assert told.pop(name) == "read"
    assert "read" not in told.values(), told
    assert "would fill" in told["npz sizes"]
    assert "would fill" in told["index zeros"]
    assert "promises the shape" in told["index header"]
    assert "capacity: found 1000000000000, expected at most 16,777,216" in told["index capacity"]
    assert "shard_bytes: found 10000000000000" in told["store shards"]


@pytest.mark.parametrize("header", [header for header in HEADERS if b"3L" not in header])  # as Python 2 wrote them
def test_a_header_of_any_kind_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(zipped({"a.npy": with_header(header, b"x" * 64)}))
    with pytest.raises(ValueError, match="no whole archive of arrays"):
        read_arrays(path)


def test_arrays_of_every_kind_are_read_right(tmp_path: Path) -> None:
    rows = np.zeros(3, [("key", "V4"), ("x", "<f8", (2,))])
    rows["x"] = 1.5
    given = {
        "rows": rows,
        "text": np.array("é"),
        "none": np.zeros((0, 3)),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "large": np.arange(400_000),
        "half": np.arange(4, dtype=np.float16)[::2],
        "empty text": np.array(["", ""]),
    }
    path = tmp_path / "a.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, **given)  # type: ignore[arg-type]
        found = read_arrays(path, max_bytes=10**7)
        for name, array in given.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
            assert found[name].flags.writeable
    assert read_arrays(path, ["half"], 10**7).keys() == {"half"}
    with pytest.raises(ValueError, match="it lacks other"):
        read_arrays(path, ["other"], 10**7)
    with pytest.raises(ValueError, match="it would fill 3,2"):
        read_arrays(path)


def test_a_pipe_or_device_is_no_file(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="Not a regular file"):
            read_arrays(path)
