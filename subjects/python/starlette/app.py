"""Starlette as its documentation shows it: a list of routes."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

# Brings the plain response to 192 bytes, see subjects/README.md.
PAD = {"X-Pad": "." * 36}


async def plain(request: Request) -> PlainTextResponse:
    return PlainTextResponse("Hello, World!", headers=PAD)


async def hello(request: Request) -> JSONResponse:
    return JSONResponse({"message": "Hello, World!"})


app = Starlette(routes=[Route("/", plain), Route("/json", hello)])
