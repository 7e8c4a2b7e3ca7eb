"""Tests of nser.replay."""
