"""Shared by the command line and the Python API: reads options into values, and carries them out.

`declared` makes options from a declaration, and `flags` lets commands share options. `options`,
`load_flags`, `request_flags`, `proxy_flags`, `place_options`, `metrics_flags`, `ws_options`,
`ratio_options` and `serve_faults` define options and check their combinations. `measure` and `job`
hold a parsed command line, `words` makes one from keyword arguments, and `usage` and
`foreign_flags` explain a wrong one. `http`, `ws`, `tcp`, `udp`, `ab`, `suite` and `serve` are the
commands without their output. `run`, `search`, `sides`, `server_there`, `suite_places`,
`suite_progress` and `folders` carry them out. `stored_runs` completes run names. `doctor` tells
whether a machine is fit to measure, by facts that `doctor_there` gathers of another host.
"""
