"""The charts of a report: one module a kind, each a function from plain values to an Altair chart,
or None where there is nothing to see. Must not know records, the store or HTML.
"""
