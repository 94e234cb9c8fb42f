"""TLS in the plans of generators and servers; ``plan`` has the rest of the protocol."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trueload.protocol.model import Model


class TrustSystem(Model):
    """Trust the issuers that the engine's machine trusts."""

    kind: Literal["system"] = "system"


class TrustGiven(Model):
    """Trust the issuers in a PEM text (a blob), and the certificates in it themselves."""

    kind: Literal["given"] = "given"
    sha256: str


class TrustAnybody(Model):
    """Trust anybody: verification is off."""

    kind: Literal["anybody"] = "anybody"


TrustPlan = Annotated[TrustSystem | TrustGiven | TrustAnybody, Field(discriminator="kind")]
"""Whose certificates are accepted."""


class TlsPlan(Model):
    """TLS of the client."""

    server_name: str
    """The name that is asked for, and that the certificate must be for."""
    alpn: tuple[str, ...]
    alpn_required: bool = False
    trust: TrustPlan
    certificate_sha256: str | None = None
    """A certificate of the client, as a blob in PEM."""
    key_sha256: str | None = None
    """Its key, as a blob in PEM; the key itself is in no plan."""
    resumption: bool
    """Sessions are resumed; tickets are shared by the connections of a thread."""
    tunnel_sha256: str | None = None
    """The request that has a proxy open a tunnel, as a blob; the addresses are the proxy's then."""


class ServeSelfSigned(Model):
    """A certificate made at the start; ``ready`` contains it."""

    kind: Literal["self_signed"] = "self_signed"
    names: tuple[str, ...]


class ServeGiven(Model):
    """A certificate and its key, blobs in PEM."""

    kind: Literal["given"] = "given"
    certificate_sha256: str
    key_sha256: str


ServeTlsPlan = Annotated[ServeSelfSigned | ServeGiven, Field(discriminator="kind")]
"""TLS of the server."""
