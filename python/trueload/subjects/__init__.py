"""The programs that are measured, as their files describe them.

`manifest` a subject's own file · `selection` which of them are meant · `contracts` what a server of
a kind must answer.
"""
