"""Live metrics of a run, for Prometheus to scrape and for OpenTelemetry collectors.

How: ``tally`` sums up the progress of a trial, and ``families`` turns the sums into samples by the
table in ``names``. These three are pure. ``exports`` observes the trials. ``scrape`` answers
Prometheus and ``otlp`` sends to a collector, each from a thread of its own that only reads.
"""
