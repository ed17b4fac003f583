"""Shifts: Which tools are shown, and how."""
