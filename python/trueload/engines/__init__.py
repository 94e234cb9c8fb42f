"""Engines that run: one, or those of several hosts as if they were one.

`engine` speaks with one · `clock` compares the clocks of hosts, `merge` and `ticks` put together
what their engines say, `member` is one of them, and `fleet` speaks with all and stands where a
single engine would. The package must not know trials, records or how a place is opened.
"""
