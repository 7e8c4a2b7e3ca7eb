"""Modules of extras that are not installed are left out when doctests are collected."""

from importlib.util import find_spec

collect_ignore = [f"nser/trainers/{extra}.py" for extra in ("torchrl", "tianshou") if find_spec(extra) is None]
# It needs a whole verl with TransferQueue; tests load it against verl's real buffers.
collect_ignore += ["nser/trainers/verl/v1.py"]
