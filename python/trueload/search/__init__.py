"""The largest safe load: searched for, then confirmed by a run of its own.

`decide` chooses the next load, as a pure function of the steps so far. `judge` says what a record
means for a step, and how long a step must be. `execute` runs the steps, and `result` describes the
result. Nothing here knows a protocol: a load is a number, and measuring is a function passed as an
argument.
"""
