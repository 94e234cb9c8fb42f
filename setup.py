"""The one thing that pyproject.toml cannot say: the wheel carries the catalogue.

``suites/``, ``subjects/`` and ``contracts/`` lie at the top of the checkout, where people look for
them, and in the wheel under ``trueload/catalogue/``. An editable install has no copy: there the
checkout itself is used.
"""

from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree

from setuptools import setup
from setuptools.command.build_py import build_py

CATALOGUE_FOLDERS = ("suites", "subjects", "contracts")
# What building a subject in place leaves behind.
LEFTOVERS = ignore_patterns("target", "build", "node_modules", "__pycache__", "subject", ".venv")


class BuildWithCatalogue(build_py):
    """Build the package, then copy the catalogue into it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in CATALOGUE_FOLDERS:
            copy = Path(self.build_lib, "trueload", "catalogue", name)
            rmtree(copy, ignore_errors=True)
            copytree(name, copy, ignore=LEFTOVERS)


setup(cmdclass={"build_py": BuildWithCatalogue})
