"""ToolShift's own studies, and former versions of shifts and suites."""
