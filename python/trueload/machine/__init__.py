"""This machine and its processes, read from the kernel: facts, no judgement.

`facts` properties of the machine · `processes` who is whose child · `listeners` who holds which
socket · `sock_diag` sockets by netlink · `accounting` resource usage of processes · `peers`
backends behind a proxy · `noise` CPU use of unrelated processes · `throttling` effect of CPU limits
· `locality` whether an address may be on this machine · `wakeups` their latency · `open_files`,
`ports` limits.
"""
