"""Shifted scenes as packages of other people's trainers: verifiers, OpenEnv, TRL.

A package names its scenes (`scenes.json`) and takes everything else from here, so it needs
ToolShift without extras. Modules that need a trainer's package are imported there only.
"""
