"""Names that a user gives to runs, in a table of their own that is made with the first name.

How: a store without the table has no names, and an older trueload does not miss it. A damaged table
is read as empty.
"""

from __future__ import annotations

import re
import sqlite3

from trueload.errors import UserError

# It cannot be the beginning of an id, which is digits, nor an option.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_READ_MAX = 10_000


def check_name(name: str) -> None:
    """Raise ``UserError`` for what cannot be a name of a run."""
    if name == "last":
        raise UserError("'last' is always the latest run", "take another name")
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"{name!r} cannot be the name of a run",
            "begin with a letter, and go on with letters, digits and . _ -, 64 at most",
        )


def read_tags(db: sqlite3.Connection) -> dict[str, str]:
    """The id of a run for each name."""
    try:
        found = db.execute(f"SELECT name, run_id FROM tags LIMIT {_READ_MAX}").fetchall()
    except sqlite3.DatabaseError:
        return {}
    return {name: run for name, run in found if isinstance(name, str) and isinstance(run, str)}


def write_tag(db: sqlite3.Connection, name: str, run_id: str) -> None:
    """Give the name to that run, and take it from any other."""
    db.execute("CREATE TABLE IF NOT EXISTS tags (name TEXT PRIMARY KEY, run_id TEXT NOT NULL)")
    db.execute("INSERT OR REPLACE INTO tags (name, run_id) VALUES (?, ?)", (name, run_id))


def remove_tag(db: sqlite3.Connection, name: str) -> None:
    """Take the name from its run."""
    db.execute("DELETE FROM tags WHERE name = ?", (name,))
