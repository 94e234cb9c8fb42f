"""A row of the table of attacks."""

from __future__ import annotations

from dataclasses import dataclass
from subprocess import TimeoutExpired

from process import BenchError
from redteam.demands import Demand, Row, judge
from redteam.scenes import Scene
from redteam.stage import Stage


@dataclass(frozen=True)
class Attack:
    """A row of the table; `ONLY` selects it by the beginning of its `key`."""

    key: str
    what: str
    scene: Scene
    demands: tuple[Demand, ...]

    def make(self, stage: Stage) -> Row:
        """Make the attack and judge the result; the row says why if it cannot be made here."""
        try:
            seen = self.scene.play(stage)
        except BenchError as error:
            return Row(self.key, self.what, "", str(error), None)
        except TimeoutExpired as error:
            why = f"it does not end within {error.timeout:g} s"
            return Row(self.key, self.what, "", why, False)
        return judge(self.key, self.what, seen, self.demands)
