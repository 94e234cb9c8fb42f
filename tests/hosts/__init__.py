"""Hosts for tests: network namespaces that look like real hosts to a program."""
