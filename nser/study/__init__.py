"""Conditions × update ratios × seeds of one environment, on a laptop: what the claims about replay rest on."""
