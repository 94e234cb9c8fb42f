"""The command line: each module registers its commands and shows what they came to; ``app`` puts
them together.

Nothing else may import this package, so that everything below it can be used and tested without a
terminal.
"""
