"""Runs: what is played, in which order, and where it is stored."""
