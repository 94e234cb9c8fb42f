"""This machine and its processes, read from the kernel: facts, no judgement.

`facts` what it is like · `accounting` what processes use · `peers` the backends behind a proxy ·
`noise` what the others took · `throttling` what CPU limits cost · `here` which addresses may be its
own · `wakes` how late a sleeper wakes · `open_files`, `ports` its limits.
"""
