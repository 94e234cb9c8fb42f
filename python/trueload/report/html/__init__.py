"""A report as one HTML page, and its charts as files.

How a report is made: the rows of a run become plain tables (``gather``, ``entries``, ``curves``).
Tables become sentences (``words``) and charts (``charts``). Charts become SVG without active
content (``draw``), and all of it one page (``page``). Nothing here measures or judges: each figure
comes from the function that the command line uses.
"""

from trueload.extras import require

require("report", "a report or chart", "altair", "jinja2", "vl_convert")
