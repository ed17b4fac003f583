"""Reads the words of agents: answers, endings, questions, and what results say in passing."""
