"""Reads whether an answer is right: by its type where the task names one, else by its words."""
