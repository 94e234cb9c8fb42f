"""The crates: Cargo is told of each Rust file, as a file that no `mod` names is never compiled."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

CRATES = Path(__file__).resolve().parents[2] / "crates"


def roots(crate: Path) -> Iterator[Path]:
    """Yield the files that Cargo compiles by their own name."""
    tests = tomllib.loads((crate / "Cargo.toml").read_text()).get("test", [])
    yield from (crate / "src/lib.rs", crate / "src/main.rs")
    yield from (crate / test.get("path", f"tests/{test['name']}.rs") for test in tests)


def is_declared(file: Path) -> bool:
    """Whether the module above a file names it."""
    module = file.parent if file.name == "mod.rs" else file
    folder = module.parent
    above = [folder / name for name in ("mod.rs", "lib.rs", "main.rs")] + [
        folder.with_suffix(".rs")
    ]
    texts = (path.read_text() for path in above if path.is_file())
    return any(re.search(rf"^\s*(pub.* )?mod {module.stem};", text, re.M) for text in texts)


def test_every_rust_file_of_a_crate_is_compiled() -> None:
    crates = [manifest.parent for manifest in CRATES.glob("*/Cargo.toml")]
    assert len(crates) > 1
    for crate in crates:
        files = {file for room in ("src", "tests") for file in (crate / room).rglob("*.rs")}
        forgotten = {file for file in files - set(roots(crate)) if not is_declared(file)}
        assert forgotten == set(), "add a `mod` line for each, to `main.rs` or the module above"
