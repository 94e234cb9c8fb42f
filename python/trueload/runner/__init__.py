"""The runner: builds a subject, starts it, verifies it, and leaves nothing of it behind.

`needs` lists what the machine must have, and `build` is the build cache. `supervisor` is the small
program that owns a subject's processes, and `process` is the runner's end of it. `cgroup` gives
reliable membership if the kernel supports it, and `cpus` assigns CPUs. `verify` runs the contract's
exchanges. `client` talks to a subject over its stdin and stdout, and `verify_client` checks it
against its contract. `trials` runs one planned trial from build to record.
"""
