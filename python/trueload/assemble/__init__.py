"""What the engine said and what was seen beside it, put together as a record.

`trial` is the whole; each of the others adds its part. The package must not know how a trial is
run.
"""
