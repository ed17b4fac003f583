"""Domains: one folder a world; `registry` finds them, `own` reads a world of the user's."""
