"""Two sides against each other.

`difference` what a ratio allows to say · `trials` runs, row by row · `pairs` runs in turn ·
`baseline` a stored run to compare with.
"""
