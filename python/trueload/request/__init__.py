"""What is sent, from the user's words to values: URLs, headers, bodies, TLS; and what in it is
secret.

`values` the values that the others make · `url`, `targets`, `origins`, `route`, `proxy` where it
goes · `make`, `form`, `header_files`, `message`, `curl` what it is · `scenario`, `steps` the steps
of a session · `replay` recorded requests; `recording` reads them, `recorded_request`, `access_log`,
`har` and `timed_lines` know their formats, `har_scenario` makes steps · `data`, `environment` what
fills it · `streams` how its answer is read · `fields` checks an entry of a file · `tls` how it is
secured · `redact`, `secret_names`, `secret_urls` what is never stored · `shell` commands to paste.
"""
