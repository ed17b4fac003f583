"""Adapting by training: a checkpoint learns one release, and is kept only if nothing is lost."""
