"""Compares two sides.

`difference` decides what a ratio allows to claim. `trials` compares runs row by row, `pairs`
compares runs in turn, and `run_records` reads a stored run to compare with.
"""
