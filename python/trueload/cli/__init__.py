"""The command line: each module registers its commands and shows their results.

``app`` puts them together. Nothing else may import this package, so that everything below it can be
used and tested without a terminal.
"""
