"""Shared by the command line and the Python API: reads options into values, and carries them out.

Options are declared in `protocol` (`request_options`, `load_options`, `engine_options`) and here
(`measure_options`, `place_options`, `serve_options`, `suite_options`).
`declarations` makes them those of a command, and `flags` lets commands share them. The options of a
command are in the module of its name (`http`, `ws`, `tcp`, `udp`), and in `job_options`,
`measuring`, `ab_options`, `suite_job` and `serve_flags`. These import what the options mean only
when a command runs, so that a help starts quickly. `request_flags`, `load_flags` and those beside
them say what they mean, and which cannot be used together. `measure` and `job` hold a parsed
command line, `command_line` makes one from keyword arguments, and `usage` and `foreign_flags`
explain a wrong one. `run` tells the way of one run; it, `ab`, `suite` and `serve` are the commands
without their output. `output` tells the user how a run went. `search`, `ab_servers`,
`server_place`, `suite_places`, `suite_progress` and `folders` carry them out. `stored_runs`
completes run names. `doctor` tells whether a machine is fit to measure, by facts that
`doctor_engine` asks of an engine, and `doctor_hosts` gathers of another host.
"""
