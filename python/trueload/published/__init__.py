"""Published figures as data, each file named after the suite that reproduces it.

``ws-broadcast.csv``: hashrocket/websocket-shootout, round 2 (October 2016), what websocket-bench
printed of each server: clients, and of the senders' receipts p95, min, median and max in ms. The
server had an i7-4790K of its own, with 16 GB, the clients other machines over gigabit Ethernet; of
several runs the best was published.
"""
