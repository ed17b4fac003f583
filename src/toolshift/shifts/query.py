"""Shifts: What the user says."""
