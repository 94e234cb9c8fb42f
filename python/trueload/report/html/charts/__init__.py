"""The charts of a report, one module per kind.

Each is a function from plain values to an Altair chart, or None if there is nothing to show.
"""
