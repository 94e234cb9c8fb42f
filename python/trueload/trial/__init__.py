"""One trial: what it is to do, and how it is run.

`spec` says what is to be done, `plan` and `blobs` make the plan for the engine, `run` carries it
out, and `observer` sees what comes of it. `addresses`, `server_discovery`, `server_files` and
`environment` look at what surrounds the trial. `ceiling` measures what this machine can do at most.
"""
