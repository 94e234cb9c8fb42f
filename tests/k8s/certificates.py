"""The certificates of a test cluster, and the kubeconfig files that carry them."""

from __future__ import annotations

import json
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

CLUSTER = "test"


class Certificates:
    """One authority; every program of the cluster has a certificate of it, as server or client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.authority = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))
        self.admin = self._issue("admin", group="system:masters")
        self.server = self._issue("server")
        self.service_accounts = folder / "service-accounts.pem"
        self.service_accounts.write_bytes(_new_key())

    def kubeconfig(self, path: Path, server: str, user: dict[str, str], namespace: str) -> Path:
        """Write a kubeconfig for one user; ``user`` is its entry, such as a token."""
        cluster = {"server": server, "certificate-authority": str(self.authority)}
        context = {"cluster": CLUSTER, "user": "user", "namespace": namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CLUSTER, "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": CLUSTER, "context": context}],
            "current-context": CLUSTER,
        }
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path

    def _issue(self, name: str, group: str | None = None) -> Path:
        """Write certificate and key of a program into one file, and return its path."""
        issued = self._authority.issue_cert(
            "127.0.0.1",
            "localhost",
            common_name=name,
            organization_name=group,
            key_type=trustme.KeyType.ECDSA,
        )
        path = self.folder / f"{name}.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(str(path))
        path.chmod(0o600)
        return path


def _new_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
