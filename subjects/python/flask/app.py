"""Flask as its quickstart shows it: a route for each path; a dict becomes JSON."""

from __future__ import annotations

from flask import Flask, Response

# Brings the plain response to 192 bytes, see subjects/README.md.
PAD = {"X-Pad": "." * 11}

app = Flask(__name__, static_folder=None)


@app.get("/")
def plain() -> Response:
    return Response("Hello, World!", mimetype="text/plain", headers=PAD)


@app.get("/json")
def hello() -> dict[str, str]:
    return {"message": "Hello, World!"}
