"""trueload measures how much load a network program can carry, and says when it cannot vouch for a
number."""

__version__ = "0.1.0"
