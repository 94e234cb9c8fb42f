"""What the command line and the Python API both call: options read into values, and values done.

`declared` options of a declaration, `flags` commands that share theirs; `options`, `load_flags`,
`request_flags`, `place_options`, `metrics_flags`, `ws_options`, `ratio_options`, `serve_faults` the
options and what they mean together; `measure` and `job` a command line that was understood, `words`
one made of keyword arguments, `usage` and `foreign_flags` what is wrong with one; `http`, `ws`,
`tcp`, `udp`, `ab`, `suite`, `serve` the commands, less what they print; `run`, `search`, `sides`,
`server_there`, `suite_places`, `suite_progress`, `folders` how they are done; `stored_runs` what
completes a word; `doctor` is this machine fit to measure?
"""
