"""Measured runs, kept in one SQLite file.

`rows` the values · `runs` reads and writes them · `delete` removes them · `file` the file and its
damage · `lock` who is writing.
"""
