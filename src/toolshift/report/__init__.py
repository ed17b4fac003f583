"""How a result is shown to a reader."""
