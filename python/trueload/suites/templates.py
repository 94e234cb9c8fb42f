"""The files of a new suite: it runs as it is, and every line may be changed.

How: three files by the suite's name: the suite, its contract and one subject.
"""

from __future__ import annotations

SUITE = """\
# What is compared, under which load. docs/your-own-suite.md explains every key.

about    = "{name}: two servers on the same work"
contract = "{name}"          # contracts/{name}.toml: what every subject must answer
duration = "5s"              # of each trial
warmup   = "1s"
repeat   = 6                 # trials of each subject and load; fewer are too few to rank

# A trial for every combination of these values; add tables for other loads.
[[loads]]
connections = [8, 64]
# rate      = ["1k/s"]       # an open loop: so many requests a second, whatever the answers
"""

CONTRACT = """\
# What every subject of the suite must answer. It is asked before each trial, and a subject that
# answers otherwise is not measured.

about = "GET /item/1 answers an item as JSON"
role  = "server"

# The request that is sent under load.
[load]
path = "/item/1"

# The first of these also tells when a subject is ready.
[[exchanges]]
what   = "the item"
path   = "/item/1"
status = 200
type   = "application/json"
json   = true                # any JSON; `body` would ask for these very bytes

[[exchanges]]
what   = "the item, twice on one connection"
form   = "twice"
path   = "/item/1"
status = 200

[[exchanges]]
what   = "an item that is not there"
path   = "/item/none"
status = 404
"""

MANIFEST = """\
# How the subject is run. Language and name come from the path: subjects/LANGUAGE/NAME.
# docs/adding-a-subject.md explains every key.

role      = "server"
about     = "the example of a new suite: a thread for each connection"
category  = "micro"
contracts = ["{name}"]
needs     = {{ tools = ["python3"] }}
run       = ["python3", "server.py", "--listen", "{{host}}:{{port}}"]
version   = ["python3", "--version"]

# A variant states only what differs, and is a row of its own.
[variants.large]
about     = "the same with items of 8 KB"
run       = ["python3", "server.py", "--listen", "{{host}}:{{port}}", "--size", "8000"]
"""

SERVER = '''\
"""Answers GET /item/NUMBER with JSON: an example, to be replaced by your own program."""

import argparse
import http.server
import json


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    size = 16

    def do_GET(self):
        number = self.path.removeprefix("/item/")
        found = number.isdecimal()
        item = {"id": number, "name": "x" * self.size} if found else {"error": "no such item"}
        body = json.dumps(item).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--listen", required=True)
    options.add_argument("--size", type=int, default=Handler.size)
    given = options.parse_args()
    Handler.size = given.size
    host, _, port = given.listen.rpartition(":")
    Server((host.strip("[]"), int(port)), Handler).serve_forever()
'''


def files_of(name: str) -> dict[str, str]:
    """Return the text of each file, by its path below the folder that has ``suites/``."""
    subject = f"subjects/python/{name}"
    return {
        f"suites/{name}.toml": SUITE.format(name=name),
        f"contracts/{name}.toml": CONTRACT,
        f"{subject}/subject.toml": MANIFEST.format(name=name),
        f"{subject}/server.py": SERVER,
    }
