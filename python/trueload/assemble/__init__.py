"""Assembles a record from what the engine reported and what was sampled beside it.

`trial` makes the whole record; the others add what is of no account (`record/accounts`).
"""
