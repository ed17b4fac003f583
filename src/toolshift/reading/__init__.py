"""Reads the words of agents (answers, endings, questions) and hints in the text of results."""
