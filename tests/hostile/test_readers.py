"""Whatever stands in a file, reading it gives what is there or one sentence of ours; by hand:
`python -m tests.hostile.test_readers 1000` for as many damages of every file."""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.errors import NserError
from tests.hostile.readers import READERS, Reader

LONGEST = 1500  # characters of a sentence, with the path


def read(reader: Reader, content: bytes) -> str:
    """`read` or the sentence of what is wrong with a file of this content."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        for name, whole in (reader.files() | {reader.target: content}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)
        try:
            reader.read(folder)
        except NserError as error:
            told = str(error)
        else:
            return "read"
    assert told
    assert "\n" not in told
    assert len(told) <= LONGEST
    return told


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_whole_file_is_read(reader: Reader) -> None:
    assert read(reader, reader.files()[reader.target]) == "read"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(reader: Reader) -> None:
    whole = reader.files()[reader.target]

    @given(st.integers(0, 2**32))
    @settings(max_examples=reader.examples, deadline=None)
    def holds(seed: int) -> None:
        read(reader, reader.damage(random.Random(seed), whole))

    holds()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_file_is_cut_anywhere(reader: Reader) -> None:
    whole = reader.files()[reader.target]
    for length in range(0, len(whole), max(1, len(whole) // reader.examples)):
        read(reader, whole[:length])


def main(count: int, names: list[str]) -> None:
    """Damage every file `count` times; print how often it was read all the same, and every foreign error."""
    for reader in READERS:
        if names and reader.name not in names:
            continue
        whole, outcomes, foreign = reader.files()[reader.target], Counter[str](), Counter[str]()
        for seed in range(count):
            try:
                told = read(reader, reader.damage(random.Random(seed), whole))
                outcomes["read" if told == "read" else "refused"] += 1
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                ours = [f for f in traceback.extract_tb(error.__traceback__) if "main/" in f.filename][-1]
                key = f"{type(error).__name__}: {str(error)[:150]} at {place.filename[-40:]}:{place.lineno}"
                foreign[f"{key} from {ours.filename[-30:]}:{ours.lineno} (seed {seed})"[:400]] += 1
        print(f"{reader.name}: {count} damaged, {dict(outcomes)}, {sum(foreign.values())} foreign errors", flush=True)
        for told, times in foreign.most_common(12):
            print(f"  {times} × {told}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
