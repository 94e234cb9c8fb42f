"""Suites: subjects x loads x repetitions.

`definition` the TOML file · `plan` what is to be done, as a pure value · `execute` doing it, row by
row, into the store · `summary` the rows as figures of one cell.
"""
