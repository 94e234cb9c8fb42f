"""One trial: what it is to do, and doing it.

`spec` what is to be done · `asked` the plan for the engine · `run` doing it · `addresses`,
`server_found`, `server_files`, `environment` what surrounds it · `ceiling` what this machine
can do at most.
"""
