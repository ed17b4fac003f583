"""ToolShift: what happens to your agent when the world moves?"""
