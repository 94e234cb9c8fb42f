"""FastAPI as its tutorial shows it: a route per path, and a model that serialises the object."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

# Brings the plain response to 192 bytes, see subjects/README.md.
PAD = {"X-Pad": "." * 36}


class Message(BaseModel):
    message: str


app = FastAPI()


@app.get("/")
async def plain() -> PlainTextResponse:
    return PlainTextResponse("Hello, World!", headers=PAD)


@app.get("/json")
async def hello() -> Message:
    return Message(message="Hello, World!")
