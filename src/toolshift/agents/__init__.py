"""The agents that ship with ToolShift."""
