"""Tool-use conversations of other people: read, shifted through the sandbox's layers, written."""
