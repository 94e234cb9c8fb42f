"""How results are shown: to people, live and afterwards, and to programs. Nothing here decides."""
