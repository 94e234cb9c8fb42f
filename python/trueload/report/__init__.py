"""Shows results: to people, live and afterwards, and to programs. Nothing here judges."""
