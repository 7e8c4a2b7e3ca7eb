"""Converters for trainers that were read, not run: their documented batches to rollouts and back.

Each module names the version and the place in its source that it was written after. The tests hold the keys and
the alignment of hand-made batches; **nothing here was run inside the framework itself**.
"""
