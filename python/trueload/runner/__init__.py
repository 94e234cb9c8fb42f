"""The runner: builds a subject, starts it, verifies it, and leaves nothing of it behind.

`needs` what the machine must have · `build` the build cache · `supervisor` the small program
that owns a subject's processes · `process` the runner's end of it · `cgroup` reliable
membership where the kernel gives it · `cpus` who runs where · `verify` the contract's
exchanges · `client` a subject that is spoken to over its stdin and stdout, `verify_client` what its
contract asks of it · `trials` one planned trial from build to record.
"""
