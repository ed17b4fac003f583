"""The outside: protocols, frameworks and tools that are not ours."""
