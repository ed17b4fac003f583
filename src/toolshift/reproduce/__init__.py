"""The research's experiments: arms, findings, pages and plots."""
