"""Proposing rules from episodes, checking them against data, and keeping what holds."""
