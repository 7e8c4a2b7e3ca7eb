"""Neuro-symbolic experience replay.

Importing this package is cheap: torch, numba and the environments are loaded by the parts that use them.
"""

__version__ = "0.1.0"
