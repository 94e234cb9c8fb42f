"""The page of ``--web``: a measurement in a browser while it runs, and its report at the end.

How: ``page`` is a screen of the live view (``report.live``) and makes the states. ``server`` hands
them to browsers from a thread of its own. live.html, live.css and live.js show them.
"""
