"""Stable-Baselines3 agents that feed their errors back to the replay index and apply its weights."""
