"""What moves: one module a family of shifts."""
