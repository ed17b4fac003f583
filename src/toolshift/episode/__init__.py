"""An episode: the loop, the oracle, the grade and its cause."""
