"""Who acts: agents that ship with ToolShift."""
