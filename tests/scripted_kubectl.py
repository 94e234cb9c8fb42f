"""A program that plays ``kubectl``: it answers from a folder, and really runs what is exec'd.

How: the folder holds objects as JSON, one file each, and the names of answers to play instead. The
answers are those of a real ``kubectl`` at a real control plane, in ``recorded_kubectl/``. A command
of ``kubectl exec`` runs as a local process, so an engine works in such a Pod. Tests write the
folder by ``scripted_cluster``. Must not know trueload.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from waiting import wait_until

RECORDED = Path(__file__).resolve().parent / "recorded_kubectl"
LOOK_S = 0.02
WATCH_S = 3600.0
FLAGS_WITH_VALUE = {
    "-n": "namespace",
    "-l": "selector",
    "-o": "output",
    "-f": "filename",
    "-c": "container",
}
SWITCHES = {"-i": "stdin", "-w": "watch", "-q": "quiet", "-A": "all-namespaces"}
LONG_SWITCHES = ("stdin", "watch", "watch-only", "quiet", "output-watch-events", "ignore-not-found")
KINDS = {
    "pod": "pods",
    "po": "pods",
    "statefulset": "statefulsets",
    "statefulsets.apps": "statefulsets",
    "sts": "statefulsets",
    "job": "jobs",
    "jobs.batch": "jobs",
    "node": "nodes",
}
GROUPS = {"statefulsets": "statefulsets.apps", "jobs": "jobs.batch"}


class Asked:
    """One command line of kubectl, taken apart."""

    def __init__(self, argv: list[str]) -> None:
        self.words: list[str] = []
        self.flags: dict[str, str] = {}
        self.command: list[str] = []
        rest = list(argv)
        while rest:
            self._take(rest)

    def _take(self, rest: list[str]) -> None:
        word = rest.pop(0)
        if word == "--":
            self.command, rest[:] = list(rest), []
        elif word in SWITCHES:
            self.flags[SWITCHES[word]] = "true"
        elif word in FLAGS_WITH_VALUE:
            self.flags[FLAGS_WITH_VALUE[word]] = rest.pop(0)
        elif not word.startswith("-"):
            self.words.append(word)
        elif "=" in word:
            name, _, value = word.lstrip("-").partition("=")
            self.flags[FLAGS_WITH_VALUE.get(f"-{name}", name)] = value
        elif word.lstrip("-") in LONG_SWITCHES:
            self.flags[word.lstrip("-")] = "true"
        else:
            self.flags[word.lstrip("-")] = rest.pop(0)

    @property
    def verb(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def kind(self) -> str:
        word = self.words[1].partition("/")[0] if len(self.words) > 1 else ""
        return KINDS.get(word, word)

    @property
    def name(self) -> str | None:
        if "/" in self.words[1]:
            return self.words[1].partition("/")[2]
        return self.words[2] if len(self.words) > 2 else None

    def selects(self, labels: dict[str, str]) -> bool:
        """Whether ``--selector a=b,c=d`` selects an object with such labels."""
        wanted = self.flags.get("selector", "")
        pairs = [pair.replace("==", "=").partition("=") for pair in wanted.split(",") if pair]
        return all(labels.get(key) == value if eq else key in labels for key, eq, value in pairs)


def recorded(name: str) -> dict[str, Any]:
    """Return an answer that was recorded: ``argv``, ``stdout``, ``stderr`` and ``rc``."""
    answer: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return answer


def play(name: str, **instead: str | None) -> NoReturn:
    """Answer as recorded, with another name for each ``RECORDED_NAME=ANOTHER``."""
    answer = recorded(name)
    for stream, text in ((sys.stdout, answer["stdout"]), (sys.stderr, answer["stderr"])):
        said = text if isinstance(text, str) else json.dumps(text, indent=4) + "\n"
        for old, new in instead.items():
            said = said.replace(old.replace("_", "-"), new or old)
        stream.write(said)
    sys.stdout.flush()
    sys.exit(answer["rc"])


class Kubectl:
    """One run of the program."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder = folder
        self.asked = Asked(argv)
        self.namespace = self.asked.flags.get("namespace", "default")
        with (folder / "calls.jsonl").open("a") as calls:
            calls.write(json.dumps(argv) + "\n")

    def run(self) -> NoReturn:
        """Answer. Leaves by ``SystemExit``."""
        verb = self.asked.verb
        self._play_instead(f"{verb} {self.asked.kind}", verb, "*")
        verbs = {"get": self._get, "exec": self._exec, "create": self._create}
        verbs |= {"apply": self._create, "delete": self._delete, "auth": self._auth}
        if verb not in verbs:
            sys.exit(f'error: unknown command "{verb}" for "kubectl"')
        verbs[verb]()
        sys.exit(0)

    def _play_instead(self, *keys: str) -> None:
        instead = json.loads((self.folder / "instead.json").read_text())
        for key in keys:
            if key in instead:
                play(instead[key])

    # --- objects ----------------------------------------------------------------------------------

    def _objects(self, kind: str) -> Iterator[dict[str, Any]]:
        for path in sorted((self.folder / "objects" / kind).glob("*.json")):
            try:
                found = json.loads(path.read_text())
            except FileNotFoundError:  # deleted meanwhile
                continue
            mine = found["metadata"].get("namespace", self.namespace) == self.namespace
            if mine and self.asked.selects(found["metadata"].get("labels", {})):
                yield found

    def _one(self, kind: str, name: str) -> dict[str, Any]:
        for found in self._objects(kind):
            if found["metadata"]["name"] == name:
                return found
        if "ignore-not-found" in self.asked.flags:
            sys.exit(0)
        sys.stderr.write(
            f'Error from server (NotFound): {GROUPS.get(kind, kind)} "{name}" not found\n'
        )
        sys.exit(1)

    def _get(self) -> None:
        if "watch" in self.asked.flags or "watch-only" in self.asked.flags:
            self._watch()
        kind, name = self.asked.kind, self.asked.name
        if name is not None:
            _print(self._one(kind, name))
            return
        items = list(self._objects(kind))
        _print(
            {
                "apiVersion": "v1",
                "items": items,
                "kind": "List",
                "metadata": {"resourceVersion": ""},
            }
        )

    def _watch(self) -> None:
        known: dict[str, str] = {}
        wait_until(lambda: self._tell_changes(known), "the watch ends", WATCH_S)

    def _tell_changes(self, known: dict[str, str]) -> bool:
        """Print what has changed since the last call; an answer to play instead ends the watch."""
        events = "output-watch-events" in self.asked.flags
        now = {one["metadata"]["name"]: one for one in self._objects(self.asked.kind)}
        for name, one in now.items():
            if known.get(name) != (text := json.dumps(one)):
                kind = "MODIFIED" if name in known else "ADDED"
                _print({"type": kind, "object": one} if events else one)
                known[name] = text
        for name in known.keys() - now.keys():
            last = json.loads(known.pop(name))
            _print({"type": "DELETED", "object": last} if events else last)
        self._play_instead("watching", "*")
        return False

    def _auth(self) -> NoReturn:
        """Answer ``auth can-i VERB RESOURCE``: yes, unless a test has denied it."""
        sub = self.asked.flags.get("subresource")
        asked = f"{self.asked.words[2]} {self.asked.words[3]}{f'/{sub}' if sub else ''}"
        is_denied = asked in json.loads((self.folder / "denied.json").read_text())
        print("no" if is_denied else "yes")
        sys.exit(1 if is_denied else 0)

    def _create(self) -> None:
        given = json.loads(sys.stdin.read())
        assert given["kind"] == "Job", "only Jobs are made here"
        name = given["metadata"]["name"]
        given["metadata"] |= {"namespace": self.namespace, "uid": f"uid-of-{name}"}
        write(self.folder / "objects" / "jobs" / f"{name}.json", given)
        states = json.loads((self.folder / "job_pods.json").read_text())
        for index in range(given["spec"]["completions"]):
            self._make_pod(given, index, states[index % len(states)])
        if self.asked.flags.get("output") == "json":
            _print(given)
        else:
            print(f"job.batch/{name} created")

    def _make_pod(self, job: dict[str, Any], index: int, state: str) -> None:
        """Make a Pod of an Indexed Job, in a state that was recorded."""
        template = job["spec"]["template"]
        name = f"{job['metadata']['name']}-{index}-abcde"
        pod: dict[str, Any] = recorded(state)["stdout"]["items"][0]
        labels = template.get("metadata", {}).get("labels", {})
        labels |= {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
        labels |= {"job-name": job["metadata"]["name"]}
        labels |= {"batch.kubernetes.io/job-completion-index": str(index)}
        pod["metadata"] |= {"name": name, "namespace": self.namespace, "labels": labels}
        pod["metadata"]["uid"] = f"uid-of-{name}"
        node = {"nodeName": f"node-{index}"} if "nodeName" in pod["spec"] else {}
        pod["spec"] = template["spec"] | node
        for container, status in zip(
            pod["spec"]["containers"], pod["status"].get("containerStatuses", []), strict=False
        ):
            status |= {"name": container["name"], "image": container["image"]}
        write(self.folder / "objects" / "pods" / f"{name}.json", pod)

    def _delete(self) -> None:
        kind, name = self.asked.kind, self.asked.name
        assert name is not None
        self._one(kind, name)
        (self.folder / "objects" / kind / f"{name}.json").unlink()
        if kind == "jobs":
            for pod in list(self._objects("pods")):
                if pod["metadata"].get("labels", {}).get("job-name") == name:
                    self._remove_pod(pod["metadata"]["name"])
        print(f'{GROUPS.get(kind, kind).replace("s.", ".", 1)} "{name}" deleted')

    def _remove_pod(self, name: str) -> None:
        (self.folder / "objects" / "pods" / f"{name}.json").unlink(missing_ok=True)
        end_processes(self.folder, name)

    # --- exec -------------------------------------------------------------------------------------

    def _exec(self) -> None:
        name = self.asked.words[1].removeprefix("pod/")
        pod = self._one("pods", name)
        status, container = pod["status"], pod["spec"]["containers"][0]
        if status["phase"] in ("Failed", "Succeeded"):
            play("exec_completed", generators_0=name, Failed=status["phase"])
        if "nodeName" not in pod["spec"]:
            play("exec_not_scheduled", generators_0=name)
        if not any("running" in one["state"] for one in status.get("containerStatuses", [])):
            play("exec_not_running", generators_0=name)
        if "without-sh" in container["image"]:
            play("exec_no_sh", generators_0=name)
        stdin = None if "stdin" in self.asked.flags else subprocess.DEVNULL
        child = subprocess.Popen(self.asked.command, stdin=stdin, start_new_session=True)
        mark = self.folder / "running" / name / str(child.pid)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        code = self._wait(child)
        mark.unlink(missing_ok=True)
        if code:
            sys.stderr.write(f"command terminated with exit code {code}\n")
        sys.exit(code)

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        """Return the command's exit code, as a shell counts it; the API server may go meanwhile."""
        while True:
            try:
                code = child.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                try:
                    self._play_instead("during exec")
                except SystemExit:
                    os.killpg(child.pid, signal.SIGKILL)  # it has our pipes, and would hold them
                    raise
                continue
            return code if code >= 0 else 128 - code


def end_processes(folder: Path, pod: str) -> None:
    """Kill what runs in a Pod."""
    for mark in (folder / "running" / pod).glob("*"):
        mark.unlink(missing_ok=True)
        try:
            os.killpg(int(mark.name), signal.SIGKILL)
        except ProcessLookupError:
            continue


def write(path: Path, value: object) -> None:
    """Write a file at once: another process reads it either before or after."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(value))
    new.rename(path)


def _print(value: object) -> None:
    print(json.dumps(value, indent=4), flush=True)


def main(folder: str) -> NoReturn:
    """Be kubectl for this command line."""
    Kubectl(Path(folder), sys.argv[1:]).run()
