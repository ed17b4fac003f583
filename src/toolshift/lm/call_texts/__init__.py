"""Calls of tools as the chat templates of models write them in text, one table of formats."""
