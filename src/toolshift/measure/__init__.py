"""Measures: scores, causes, and the statistics on them."""
