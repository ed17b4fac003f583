"""Shifts: The domain, its rules and its limits."""
