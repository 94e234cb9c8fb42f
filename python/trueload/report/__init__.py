"""Shows results: to people, live and afterwards, and to programs. Nothing here judges.

`accounts` what a result has beside the outcomes of requests · `sheets` the columns of exports ·
`export` their formats · `grid` tables.
"""
