"""Language models on this machine: prompts, grammar, decoding, weights."""
