"""The largest safe load: searched for, then confirmed by a run of its own.

`decide` which load to try next, as a pure function of the steps so far · `judge` what a record says
of a step, and how long a step must be · `execute` does the steps · `found` what came of it.
Nothing here knows a protocol: a load is a number, and measuring is a function that comes as an
argument.
"""
