"""A report as one HTML page, and its charts as files.

The way of a report: the rows of a run become plain tables (``gather``, ``entries``, ``curves``),
tables become sentences (``words``) and charts (``charts``), charts become SVG without anything that
acts (``draw``), and all of it one page (``page``). Nothing here measures or judges: each figure is
taken from where the command line takes it.
"""

from trueload.extras import require

require("report", "a report or chart", "altair", "jinja2", "vl_convert")
