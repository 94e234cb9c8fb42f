"""The runs of the store, as words to choose from while a command line is typed."""

from __future__ import annotations

from trueload.errors import UserError
from trueload.store.runs import Store, default_path

OFFERED_MAX = 100


def complete_run(incomplete: str) -> list[tuple[str, str]]:
    """Each run that begins so, with what it was: `last`, those with a tag, then from the latest on.
    A store that cannot be read offers nothing: a word that is being typed is no place for an
    error."""
    if not default_path().exists():
        return []
    try:
        with Store.open() as store:
            runs, tags = store.runs(), store.tags()
    except (UserError, OSError):
        return []
    titles = {run.id: run.title for run in reversed(runs)}
    named = [(name, titles[run]) for name, run in tags.items() if run in titles]
    offered = [("last", "the latest run"), *named, *titles.items()]
    return [each for each in offered if each[0].startswith(incomplete)][:OFFERED_MAX]
