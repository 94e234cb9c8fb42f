"""Build the programs of the test cluster, once, into the user's cache: ``tests/k8s/build.py``.

How: Go sources and locked modules are hashed; a folder of that name holds what they made. It takes
half an hour on two cores, so it runs at low priority. Only the standard library is used.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "control_plane"
VERSIONED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
SETTINGS = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}


@dataclass(frozen=True)
class Programs:
    """The built programs: the control plane with kubectl, and a node."""

    folder: Path

    @property
    def control_plane(self) -> Path:
        return self.folder / "k8s"

    @property
    def node(self) -> Path:
        return self.folder / "node"

    def exist(self) -> bool:
        return self.control_plane.exists() and self.node.exists()


def find_programs() -> Programs:
    """Return where the programs of these sources are kept, built or not."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in {".go", ".mod", ".sum"}:
            digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Programs(cache / "trueload" / "k8s" / digest.hexdigest()[:16])


def version() -> str:
    """Return the version of Kubernetes that go.mod names."""
    found = re.search(r"k8s\.io/kubernetes (v[\d.]+)", (SOURCES / "go.mod").read_text())
    assert found is not None
    return found[1]


def build(programs: Programs) -> None:
    """Build both programs; a build that is cut short leaves none."""
    major, minor, _ = version().lstrip("v").split(".")
    parts = {"gitVersion": version(), "gitMajor": major, "gitMinor": minor}
    flags = [f"-X {package}.{key}={value}" for package in VERSIONED for key, value in parts.items()]
    programs.folder.mkdir(parents=True, exist_ok=True)
    for target, package in ((programs.node, "./node"), (programs.control_plane, ".")):
        new = target.with_suffix(".new")
        line = ["nice", "go", "build", "-trimpath", "-ldflags", " ".join(["-s -w", *flags])]
        subprocess.run(
            [*line, "-o", str(new), package], cwd=SOURCES, env=os.environ | SETTINGS, check=True
        )
        new.rename(target)


def main() -> int:
    """Build what is missing. Returns an exit code."""
    programs = find_programs()
    is_built = programs.exist()
    needed = {"etcd": "Debian's etcd-server"} | ({} if is_built else {"go": "Go 1.24 or later"})
    for tool, package in needed.items():
        if shutil.which(tool) is None:
            print(f"{tool} is missing: install {package}", file=sys.stderr)
            return 1
    if not is_built:
        print(f"building Kubernetes {version()}, once; this takes about half an hour", flush=True)
        build(programs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
