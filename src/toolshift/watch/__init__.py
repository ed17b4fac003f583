"""Watches a stream of calls for drift while an agent works, in constant memory."""
