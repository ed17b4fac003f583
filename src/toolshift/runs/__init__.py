"""Runs: what is played, in which order, where it is kept."""
