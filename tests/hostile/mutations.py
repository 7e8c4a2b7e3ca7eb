"""Damage: of bytes, of JSON values and of NumPy archives, whose sums of bytes are right again afterwards.

Damaged bytes of an archive are mostly found by their checksum; what a stranger makes on purpose has right checksums, so
values, headers and names are changed within whole archives too.
"""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Mutation = Callable[[random.Random, bytes], bytes]

DEEP = "[" * 100_000
ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "x", "\x00", "../../x", "[/bold]", "é" * 3000, "1e999", [], [None], {}, {"x": 1}, [[1], [2, 3]], ["a", 1],
)  # fmt: skip
DTYPES = ("<i8", "<f8", "<f4", "|b1", "<i4", "|u1", "<U5", "|S3", "<c16", "<M8[s]", ">f8", "|V7")
HEADERS = (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"(" * 200 + b")" * 200 + b", }",
    b"{'descr': '|V1000000000000', 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': ('<f8', (1000000, 1000000)), 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': 'no such', 'fortran_order': 1, 'shape': 3, }",
    b"__import__('os').abort()",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }",
    b"{'\\d': 1 if 1 else 2}",
    b'"""',
    b"\x00\xff",
    b"",
)


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Cut, overwritten, doubled, emptied or with foreign bytes in it."""
    at = rng.randrange(len(content) + 1)
    length = rng.choice((1, 2, 8, 100))
    match rng.randrange(6):
        case 0:
            return content[:at]
        case 1:
            changed = bytearray(content)
            for _ in range(length):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            return bytes(changed)
        case 2:
            return content[:at] + content[at + length :]
        case 3:
            return content[:at] + rng.randbytes(length) + content[at:]
        case 4:
            return content[:at] + content[max(at - length, 0) :]
        case _:
            return rng.choice((b"", b"\x00" * 100, content[::-1], DEEP.encode(), b"\xff\xfe" + content, content * 2))


def damaged_value(rng: random.Random, value: Any) -> Any:
    """A JSON value of which one part, anywhere, is gone, doubled, or of another kind."""
    value = copy.deepcopy(value)
    holders: list[tuple[Any, Any]] = []
    _collect(value, holders)
    if not holders:
        return rng.choice(ODD)
    inside, key = rng.choice(holders)
    match rng.randrange(4):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, list):
            inside.insert(key, copy.deepcopy(inside[key]))
        case 1:
            inside[f"{key}x"] = inside.pop(key)
        case _:
            inside[key] = copy.deepcopy(rng.choice(ODD))
    return value


def _collect(value: Any, holders: list[tuple[Any, Any]]) -> None:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            holders.append((value, key))
            _collect(value[key], holders)


def damaged_json(rng: random.Random, content: bytes) -> bytes:
    """A JSON document, or JSON lines, with one damaged value, or with its bytes damaged."""
    if rng.random() < 0.4:
        return damaged_bytes(rng, content)
    try:
        return json.dumps(damaged_value(rng, json.loads(content))).encode()
    except ValueError:
        lines = content.splitlines()
        at = rng.randrange(len(lines))
        lines[at] = json.dumps(damaged_value(rng, json.loads(lines[at]))).encode()
        return b"\n".join(lines)


def damaged_archive(rng: random.Random, content: bytes) -> bytes:
    """An `.npz` with one damaged array, header, name or JSON text, or with its bytes damaged."""
    if rng.random() < 0.25:
        return damaged_bytes(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    match rng.randrange(5):
        case 0:
            del members[name]
        case 1:
            members[name] = damaged_bytes(rng, members[name])
        case 2:
            members[name] = with_header(rng.choice(HEADERS), rng.randbytes(rng.choice((0, 24, 200))))
        case _:
            array = np.load(io.BytesIO(members[name]), allow_pickle=False)
            members[name] = written(_damaged_array(rng, array))
    return zipped(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _damaged_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    text = _json_text(array)
    if text is not None:
        changed = json.dumps(_damaged_texts(rng, json.loads(text)))
        return np.array(changed) if array.dtype.kind == "U" else np.frombuffer(changed.encode(), np.uint8)
    match rng.randrange(5):
        case 0:
            return np.zeros(rng.choice(((), (0,), (3,), (2, 2), array.shape)), rng.choice(DTYPES))
        case 1:
            return np.concatenate([array, array]) if array.ndim else array[None]
        case 2:
            return array[:-1] if array.ndim else array
        case 3 if array.dtype.kind in "iuf" and array.size:
            other = array.copy()
            bound = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.nan
            other.reshape(-1)[rng.randrange(array.size)] = rng.choice((0, 1, bound))
            return other
        case _:
            raw = bytearray(array.tobytes())
            for _ in range(3 if raw else 0):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            return np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


def _json_text(array: np.ndarray) -> str | None:
    """The JSON that an array holds as text or bytes, if it does."""
    if array.dtype.kind == "U" and array.ndim == 0:
        return str(array)
    raw = array.tobytes() if array.dtype == np.uint8 else b""
    return raw.decode() if raw.startswith(b"{") else None


def _damaged_texts(rng: random.Random, value: Any) -> Any:
    """Damage of a value, or of one of the JSON documents that are texts in it."""
    inner = [key for key, text in value.items() if isinstance(text, str) and text.startswith(("{", "["))]
    if inner and rng.random() < 0.6:
        key = rng.choice(inner)
        return {**value, key: damaged_json(rng, value[key].encode()).decode(errors="replace")}
    return damaged_value(rng, value)


def with_header(header: bytes, data: bytes = b"") -> bytes:
    """An array in NumPy's format whose header is anything."""
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + data


def written(array: np.ndarray) -> bytes:
    """An array in NumPy's format."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def zipped(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """An archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()
