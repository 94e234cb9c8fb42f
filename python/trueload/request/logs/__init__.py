"""The formats of access logs, a module each; the table of them is `request.log_formats`.

`line` what they have in common · `common` what Apache and nginx write by default · `nginx` nginx's
variables in JSON · `caddy` · `alb` load balancers of AWS · `cloudfront` · `pattern` a format that
the user writes down.
"""
