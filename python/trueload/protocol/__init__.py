"""What is said to the engine and heard from it, and to client subjects: messages as values.

`plan` gathers the others for the engine · `client` is the contract of client subjects, and
`client_progress` what they say meanwhile · `shootout` a dialect of broadcasts · `packed` how
numbers travel.
"""
