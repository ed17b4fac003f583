"""The coming change: two tool lists become a shift that is exactly their difference."""
