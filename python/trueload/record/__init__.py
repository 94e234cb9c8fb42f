"""What a trial left: the stored record, and what is derived from it.

`schema` the record · `client` its part on client subjects · `distance` how far apart its CPUs were
· `figures` every statistic of a record · `thresholds` conditions on its figures · `shortage` what
it ran out of.
"""
