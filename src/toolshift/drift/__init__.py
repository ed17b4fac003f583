"""The changes between two tool lists, what they break, and the lock that stores a list."""
