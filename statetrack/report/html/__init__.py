"""A report as one HTML page that needs nothing else."""

from statetrack.report.html.rendering import page

__all__ = ["page"]
