"""One run over the engines of several hosts.

``clock`` compares their clocks, ``merge`` and ``ticks`` put together what they say, ``member`` is
one of them, and ``fleet`` speaks with all and stands where a single engine would. The package must
not know trials, records or how a place is opened.
"""
