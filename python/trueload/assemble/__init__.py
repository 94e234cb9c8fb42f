"""Assembles a record from what the engine reported and what was sampled beside it.

`trial` makes the whole record; each of the other modules adds its part. The package must not know
how a trial is run.
"""
