"""The basic types: tools, facts, layers, scenes, shifts. Imports no other package of ours."""
