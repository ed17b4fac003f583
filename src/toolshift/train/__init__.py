"""Training: expert data, supervised fine-tuning, PAFT and reinforcement learning, in our scenes."""
