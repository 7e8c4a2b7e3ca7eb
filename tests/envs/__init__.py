"""Tests of nser.envs."""
