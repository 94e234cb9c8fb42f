"""`trueload subjects`: what there is, whether it works here, and how to add one.

How: each command selects variants from the catalogue and prints one line for each, or one JSON
object. What a subject answers is printed without control characters.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueload.cli.subjects_output import (
    Selects,
    going_on,
    print_json,
    print_line,
    report_broken,
    selected,
)
from trueload.commands.folders import find_folder, subjects_home
from trueload.commands.options import AsJsonOption
from trueload.errors import ExitCode, UserError, some_broken
from trueload.report.grid import Grid, text_lines

if TYPE_CHECKING:
    from trueload.subjects.manifest import Subject


def register(app: typer.Typer) -> None:
    subjects = typer.Typer(help="List, create and check the programs under test.")
    subjects.command("list")(list_subjects)
    subjects.command("new")(new_subject)
    subjects.command("check")(check_subjects)
    subjects.command("install")(install_packages)
    subjects.command("versions")(show_versions)
    subjects.command("responses")(show_responses)
    app.add_typer(subjects, name="subjects")


def list_subjects(selects: Selects = None, as_json: AsJsonOption = False) -> None:
    """List subjects with their contracts, and what this machine lacks to run them.

    Exit codes: 0 all can be read; 2 a subject is broken, and is listed as broken.

    Example: trueload subjects list rust go
    """
    from trueload.runner import needs  # imported late, as in the others: a help has no manifest

    broken: dict[str, UserError] = {}
    found = selected(selects, lambda entry, why: broken.update({entry.name: why}))
    missing = {subject.name: needs.missing(subject) for subject in found}
    if as_json:
        shown = [_as_dict(s) | {"missing": missing[s.name]} for s in found]
        amiss = [{"name": n, "why": why.message, "hint": why.hint} for n, why in broken.items()]
        sys.stdout.write(json.dumps({"subjects": shown, "broken": amiss}, indent=1) + "\n")
    else:
        lines = {subject.name: _facts(subject, missing[subject.name]) for subject in found}
        lines |= {name: f"broken: {why.message}" for name, why in broken.items()}
        for line in text_lines(Grid((), tuple(lines.items()))):
            print_line(line)
    if broken:
        raise some_broken("subjects", broken)


def _facts(subject: Subject, missing: str | None) -> str:
    manifest = subject.manifest
    facts = f"{manifest.category:<9} {','.join(manifest.cores):<13} {','.join(manifest.contracts)}"
    facts += "" if manifest.tried is None else f"; tried: {manifest.tried}"
    return facts if missing is None else f"{facts}; skipped here: {missing}"


def new_subject(
    name: Annotated[str, typer.Argument(metavar="LANGUAGE/NAME")],
    client: Annotated[
        bool, typer.Option("--client", help="Create a program that makes requests, not a server.")
    ] = False,
    as_json: AsJsonOption = False,
) -> None:
    """Create a new subject: a manifest, and a README with the next steps.

    Example: trueload subjects new go/my-server
    """
    from trueload.subjects.manifest import MANIFEST, NAME_PATTERN

    language, slash, framework = name.partition("/")
    if not slash or not NAME_PATTERN.fullmatch(language) or not NAME_PATTERN.fullmatch(framework):
        raise UserError(
            f"{name!r} is not LANGUAGE/NAME with letters, digits and . _ + -",
            "try trueload subjects new go/my-server",
        )
    folder = subjects_home() / language / framework
    if folder.exists():
        raise UserError(f"{folder} already exists", "choose another name or edit that one")
    new = NEW_CLIENT if client else NEW_SERVER
    contract, about = _contract_for(framework, new)
    suite = new.suite if contract == new.contract else contract
    manifest = NEW_MANIFEST.format(name=framework, new=new, contract=contract, about=about)
    readme = NEW_README.format(name=name, new=new, suite=suite)
    try:
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text(manifest, encoding="utf-8")
        (folder / "README.md").write_text(readme, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{folder} cannot be created: {error.strerror}", "check its rights"
        ) from None
    if as_json:
        print_json("subject", {"name": name, "folder": str(folder)})
        return
    print_line(f"made {folder}")
    print_line(f"next: write the program, fill in {MANIFEST}, then: trueload subjects check {name}")


@dataclass(frozen=True)
class New:
    """What is made for a server or a client: its usual contract and suite, and what it is given."""

    role: str
    contract: str
    suite: str
    arguments: str
    task: str


NEW_SERVER = New(
    role="server",
    contract="http-plaintext",
    suite="quick",
    arguments='"--listen", "{host}:{port}", "--threads", "{cpus}"',
    task="It listens on the address and port that it is given.",
)
NEW_CLIENT = New(
    role="client",
    contract="http-client",
    suite="http-clients",
    arguments='"{cpus}"',
    task="It reads from stdin how many requests to make.",
)


def _contract_for(subject: str, new: New) -> tuple[str, str]:
    """Return the contract for a new subject, and what that says: the one of its name, as `suite
    new` makes it, else the usual one, else the first for its role. Raises ``UserError``."""
    from trueload.subjects.contracts import load_contract

    folder = find_folder("contracts")
    for name in (subject, new.contract, *sorted(path.stem for path in folder.glob("*.toml"))):
        with contextlib.suppress(UserError):  # not there, or broken: another one will do
            contract = load_contract(folder, name)
            if contract.role == new.role:
                return name, contract.about
    raise UserError(
        f"{folder} has no contract for a {new.role}",
        f"copy one there, such as {new.contract}.toml of trueload's own contracts",
    )


NEW_MANIFEST = """\
# Language and framework come from the path. docs/adding-a-subject.md explains every key.
role      = "{new.role}"
about     = "{name}, default settings"
category  = "platform"            # micro (no general framework), platform, fullstack or proxy
contracts = ["{contract}"]        # {about}
# needs   = {{ tools = ["go>=1.22"] }}
# build   = [["go", "build", "-o", "subject", "."]]
run       = ["./subject", {new.arguments}]
# version = ["go", "version"]

# A variant states only what differs:
# [variants.tuned]
# run     = ["./subject", {new.arguments}, "--tuned"]
"""

NEW_README = """\
# {name}

1. Put the program here. {new.task}
2. Fill in `subject.toml`: how to build it and how to run it.
3. `trueload subjects check {name}` builds it, starts it and verifies what it does.
4. `trueload suite run {suite} --subjects {name}` measures it.
5. Replace this file by what is unusual about it, or remove it.
"""


def check_subjects(selects: Selects = None, as_json: AsJsonOption = False) -> int:
    """Build and start subjects, and verify that they keep their contracts.

    Exit codes: 0 all keep them or are skipped; 4 at least one does not.

    Example: trueload subjects check go/fasthttp
    """
    from trueload.cli.subjects_check import check_each

    return check_each(selects, as_json=as_json)


def show_responses(selects: Selects = None, as_json: AsJsonOption = False) -> int:
    """Print what subjects answer to each exchange of their first contract.

    Example: trueload subjects responses nginx
    """
    from trueload.cli.subjects_check import show_each

    return show_each(selects, as_json=as_json)


def install_packages(selects: Selects = None, as_json: AsJsonOption = False) -> int:
    """Install the Debian packages that subjects need; as root only.

    Example: sudo trueload subjects install c/nginx
    """
    from trueload.runner import needs

    chosen = going_on(selects, report_broken)
    packages = sorted({p for s in chosen for p in needs.missing_packages(s)})
    if as_json:
        print_json("packages", packages)
    elif packages:
        print_line(f"packages: {' '.join(packages)}")
    if not packages:
        if not as_json:
            print_line("nothing to install")
        return ExitCode.OK
    if os.geteuid() != 0:
        raise UserError(
            f"installing {' '.join(packages)} needs root",
            f"sudo apt-get install {' '.join(packages)}",
        )
    apt = shutil.which("apt-get")
    if apt is None:
        raise UserError("this is not Debian: there is no apt-get", "install the packages by hand")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        [apt, "install", "--yes", "--no-install-recommends", "--", *packages],
        env=env,
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode != 0:
        raise UserError(
            f"apt-get ended with {done.returncode}", "try `apt-get update` first", ExitCode.USAGE
        )
    return ExitCode.OK


def show_versions(selects: Selects = None, as_json: AsJsonOption = False) -> None:
    """Print the versions of languages and frameworks as a Markdown table.

    Example: trueload subjects versions
    """
    from trueload.report.export.markdown import markdown_lines  # imported late, for the help

    rows: dict[tuple[str, str], str] = {}
    broken: dict[str, UserError] = {}
    for subject in going_on(selects, lambda entry, why: broken.update({entry.name: why})):
        if not subject.variant:
            rows[subject.language, subject.framework] = _version(subject)
    if as_json:
        shown = [{"language": key[0], "framework": key[1], "version": v} for key, v in rows.items()]
        print_json("versions", shown)
    else:
        found = tuple((*key, version) for key, version in rows.items())
        for line in markdown_lines(Grid(("Language", "Framework", "Version"), found)):
            print_line(line)
    if broken:
        raise some_broken("subjects", broken)


def _version(subject: Subject) -> str:
    """The version of its library, as pinned, before what its version command says."""
    from trueload.subjects.pinned_version import pinned_version

    library = subject.manifest.library
    pinned = None if library is None else pinned_version(subject.folder, library)
    version = _printed_version(subject)
    return version if pinned is None else f"{library} {pinned} ({version})"


def _printed_version(subject: Subject) -> str:
    from trueload.cli.subjects_check import CheckOutcome, build_here
    from trueload.commands.job import TRUELOAD_COMMAND
    from trueload.runner import needs
    from trueload.runner.process import substitute

    argv = subject.manifest.version
    if reason := needs.missing(subject):
        return f"skipped here: {reason}"
    if argv is None:
        return "; ".join(needs.tool_versions(subject).values()) or "unknown"
    folder = Path("/")
    if "/" in argv[0]:
        built = build_here(subject, lambda: False)
        if isinstance(built, CheckOutcome):
            return built.why
        folder = built.folder
    command = substitute(argv, {"build": str(folder)}, TRUELOAD_COMMAND)
    return needs.first_line(tuple(command), folder) or "unknown"


def _as_dict(subject: Subject) -> dict[str, Any]:
    return {
        "language": subject.language,
        "framework": subject.framework,
        "name": subject.variant,
        "folder": str(subject.folder),
        **subject.manifest.model_dump(mode="json"),
    }
