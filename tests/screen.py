"""A terminal's screen, as far as a live view needs it: what is drawn, and what wraps.

How: only the control codes that rich sends to draw in place are known; any other fails the test.
"""

from __future__ import annotations

import codecs
import re

_UNFINISHED = re.compile(r"\x1b(\[[?\d;]*)?$")
_PARTS = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Screen:
    """Rows of ``width`` columns; rows that scroll out of sight are kept above."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [""]
        self.wrapped = 0
        self.styles: set[str] = set()
        self._row = self._column = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unread = ""

    def feed(self, data: bytes) -> None:
        """Process a program's output; an unfinished code is kept until its rest comes."""
        text = self._unread + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        whole = len(text) if unfinished is None else unfinished.start()
        self._unread = text[whole:]
        self._write(text[:whole])

    def _write(self, text: str) -> None:
        at = 0
        while at < len(text):
            match = _PARTS.match(text, at)
            assert match, text[at : at + 20]
            at = match.end()
            given, code, end, shown = match.groups()
            if code:
                self._obey(given, code)
            elif end == "\r":
                self._column = 0
            elif end:
                self._down()
            else:
                self._put(shown)

    def _obey(self, given: str, code: str) -> None:
        if code == "A":
            self._row = max(self._row - int(given or 1), self.top)
        elif (code, given) == ("K", "2"):
            self.rows[self._row] = ""
        elif (code, given) in (("K", ""), ("K", "0")):
            self.rows[self._row] = self.rows[self._row][: self._column]
        elif code == "m":
            self.styles.update(given.split(";"))
        else:
            assert (code, given[:1]) in (("h", "?"), ("l", "?")), (given, code)

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self.rows):
            self.rows.append("")
        # By default a terminal also returns the carriage at a line feed (ONLCR).
        self._column = 0

    def _put(self, text: str) -> None:
        for character in text:
            if self._column == self.width:
                self.wrapped += 1
                self._down()
            row = self.rows[self._row].ljust(self._column)
            self.rows[self._row] = row[: self._column] + character + row[self._column + 1 :]
            self._column += 1

    @property
    def top(self) -> int:
        """The number of the first visible line."""
        return max(len(self.rows) - self.height, 0)

    def resize(self, width: int, height: int) -> None:
        """Change the size and wrap lines that are too long for it, as many terminals do."""
        found: list[str] = []
        row_after = 0
        for number, row in enumerate(self.rows):
            found += [row[at : at + width] for at in range(0, max(len(row), 1), width)]
            if number == self._row:
                row_after = len(found) - 1
        self.rows, self._row = found, row_after
        self.width, self.height = width, height
        self._column = min(self._column, width)

    @property
    def shown(self) -> list[str]:
        """The visible lines that are not empty, without trailing blanks."""
        return [row.rstrip() for row in self.rows[self.top :] if row.strip()]
