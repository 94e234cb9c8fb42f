"""Running engines: a single one, or those of several hosts that act as one.

`binary` finds the program · `engine` speaks with one · `clock` compares the clocks of hosts ·
`merge` and `ticks` combine what their engines say · `member` is one engine of several · `fleet`
speaks with all of them and replaces a single engine.
"""
