"""Hosts for tests: real ones as far as a program can see, made and removed by the test itself."""
