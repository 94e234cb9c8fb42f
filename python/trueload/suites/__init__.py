"""Suites: subjects x loads x repetitions.

`definition` reads the TOML file and `plan` lists what is to be done, as a pure value. `execute`
runs the plan row by row into the store, and `summary` turns the rows of a cell into figures, and
`load_tables` makes tables of them.
"""
