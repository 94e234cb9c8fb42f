"""What a trial left: the stored value, and what is read off it.

`schema` the record · `client` its part of client subjects · `distance` how far apart its CPUs
were · `figures` every statistic of a record · `thresholds` conditions on its figures ·
`shortage` what it ran out of.
"""
