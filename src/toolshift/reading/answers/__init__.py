"""Reads whether an answer is right by the type of what is wanted, and says where it cannot tell."""
