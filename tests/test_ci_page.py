"""The workflow and the job of docs/ci.md: as GitHub and GitLab read them, and run step by step."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from harness import ROOT, Trueload, find_free_port

PAGE = (ROOT / "docs" / "ci.md").read_text()
WORKFLOW, PIPELINE = map(yaml.safe_load, re.findall(r"(?ms)^```yaml\n(.*?)^```", PAGE))

# Keys of https://json.schemastore.org/github-workflow.json, of which a step has uses or run.
OF_STEPS = {"name", "if", "uses", "with", "run", "env", "id", "shell", "timeout-minutes"}
# Keys of a job, of https://docs.gitlab.com/ci/yaml/.
OF_JOBS = {"image", "before_script", "script", "after_script", "allow_failure", "artifacts"}


def test_the_workflow_is_one_of_github() -> None:
    # YAML 1.1 takes the key `on` for true.
    assert set(WORKFLOW) == {"name", True, "jobs"}
    for job in WORKFLOW["jobs"].values():
        assert set(job) == {"runs-on", "steps"}
        for step in job["steps"]:
            assert set(step) <= OF_STEPS
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))
            assert all(isinstance(each, str) for each in step.get("with", {}).values())


def test_the_job_is_one_of_gitlab() -> None:
    for job in PIPELINE.values():
        assert set(job) <= OF_JOBS
        for part in ("before_script", "script"):
            assert all(isinstance(line, str) for line in job[part])
        assert set(job["artifacts"]) <= {"when", "paths", "reports"}
        assert all(isinstance(code, int) for code in job["allow_failure"]["exit_codes"])


def run_steps(trueload: Trueload, folder: Path, steps: list[str]) -> None:
    """Run each step in a shell of its own, in one folder, shorter and at a free port."""
    tool = folder / "bin" / "trueload"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m trueload "$@"\n')
    tool.chmod(stat.S_IRWXU)
    path = f"{tool.parent}:{os.environ['PATH']}"
    env = trueload.env({"PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary")})
    port, left = find_free_port(), []
    try:
        for step in steps:
            script = step.replace("8080", str(port)).replace("-d 10s", "-d 500ms --warmup 0")
            script = script.replace("serve http", f"serve http --listen 127.0.0.1:{port}")
            with (folder / "log").open("a") as log:
                process = subprocess.Popen(
                    ["bash", "-e", "-c", script],
                    cwd=folder, env=env, stdout=log, stderr=log, text=True, start_new_session=True,
                )  # fmt: skip
                left.append(process)
                # 4: a busy machine can spoil so short a run.
                assert process.wait(60) in (0, 1, 4), (folder / "log").read_text()
    finally:
        for process in left:
            # A step has ended, and what it has started in the background has not.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def shell_steps(steps: list[str]) -> list[str]:
    """All but those that install trueload, which is here."""
    return [step for step in steps if not step.startswith("pip install")]


@pytest.mark.engine
def test_the_steps_of_the_workflow_measure_and_show(trueload: Trueload, tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = WORKFLOW["jobs"]["load"]["steps"]
    run_steps(trueload, tmp_path, shell_steps([step["run"] for step in steps if "run" in step]))
    assert (tmp_path / "summary").read_text().startswith("### trueload http http://127.0.0.1:")
    (artifact,) = (step["with"]["path"] for step in steps if "path" in step.get("with", {}))
    assert "<html" in (tmp_path / artifact).read_text()


@pytest.mark.engine
def test_the_steps_of_the_pipeline_measure_and_report(trueload: Trueload, tmp_path: Path) -> None:
    job = PIPELINE["load"]
    run_steps(trueload, tmp_path, shell_steps([*job["before_script"], *job["script"]]))
    (page,) = job["artifacts"]["paths"]
    assert "<html" in (tmp_path / page).read_text()
    report = ElementTree.parse(tmp_path / job["artifacts"]["reports"]["junit"]).getroot()
    names = [case.attrib["name"] for case in report]
    assert names == ["verdict", "--fail-on p99>200ms", "--fail-on errors>0.1%"]
