"""The ground: tools, facts, layers, scenes, shifts as types; knows nothing above it."""
