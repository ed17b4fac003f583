"""The report as one HTML page that needs no network."""

from toolshift.report.html.page import write_page

__all__ = ["write_page"]
