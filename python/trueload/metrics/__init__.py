"""Metrics of a run while it goes on, for Prometheus to scrape and for OpenTelemetry collectors.

How: ``tally`` sums up what a trial says of itself, ``families`` makes samples of that by the table
of ``names``: all three are pure. ``exports`` is the observer of the trials; ``scrape`` answers
Prometheus, ``otlp`` sends to a collector, each from a thread of its own that only reads.

Must not know the command line, or how a trial is run.
"""
