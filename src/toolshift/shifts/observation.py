"""Shifts: What comes back from a call."""
