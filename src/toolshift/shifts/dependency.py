"""Shifts: How tools depend on each other."""
