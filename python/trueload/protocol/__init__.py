"""Messages to and from the engine, and to and from client subjects, as values.

`plan` collects the engine's messages · `client` is the contract of client subjects ·
`client_progress` their progress · `shootout` the dialects of broadcasts · `packed` how counts are
encoded.
"""

PROTOCOL = 1
"""Version of the protocol; ``hello`` has it, and a plan must name it. The comment on the engine's
own constant says when to raise it (crates/engine/src/protocol.rs)."""
