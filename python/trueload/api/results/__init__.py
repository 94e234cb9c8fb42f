"""The results of measurements, for programs: typed views of records and of stored runs.

`quantities` has values that compare with text. `result` is a command's result, `suite` a suite's,
and `ab` that of two servers measured in turn. `shown` is what they share as something to look at,
`notebook` is the display in notebooks, and `stored` reads results from the store.
"""
