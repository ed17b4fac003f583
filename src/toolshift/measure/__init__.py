"""What was measured: scores, causes and the statistics that qualify them."""
