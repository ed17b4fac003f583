"""Commands of the lab, which `toolshift` finds by entry points."""
