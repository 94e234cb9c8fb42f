"""Files of the user and of ours: who may read them, whose code may run, what is written whole or
not at all.

`private` files that their owner alone reads · `ownership` whether a folder can be trusted ·
`outputs` what a command was asked to write · `catalogue` where suites and subjects are found ·
`toml` reading a TOML file.
"""
