"""What a trial left: the stored record, and what is derived from it.

`schema` the record · `accounts` its parts beside the outcomes of requests · `client` its part on
client subjects · `core_latency` between its CPUs · `sample` times of which some are unknown ·
`figures` every statistic of a record · `thresholds` conditions on its figures · `shortage` what it
ran out of.
"""
