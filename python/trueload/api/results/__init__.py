"""What a measurement left, for programs: typed views of records and of stored runs.

`quantities` values that compare with text · `result` a command's result · `suite` a suite's ·
`ab` that of two servers in turn · `frames` tables for pandas and polars · `notebook` the display
in notebooks · `stored` results of the store.
"""
