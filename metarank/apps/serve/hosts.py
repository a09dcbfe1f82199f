"""The names of a service that only its own machine sees, against DNS rebinding.

A page from elsewhere, whose name was made to lead to this machine, asks by that name and is refused.
Starlette's `TrustedHostMiddleware` would answer 400 in plain text, where this service answers 421 in JSON and
counts it, and would refuse what names no host.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def local_names(hosts: Iterable[str], listener: socket.socket) -> frozenset[str] | None:
    """What a request's Host may name where `listener` is at a loopback address: this machine, and `hosts`.

    None, for any name, where it is at another address, or `hosts` has "*".

    Examples
    --------
    >>> with socket.create_server(("127.0.0.1", 0)) as listener:
    ...     sorted(local_names(["labels.example"], listener))
    ['127.0.0.1', '::1', 'labels.example', 'localhost']
    """
    names = frozenset(host.lower() for host in hosts)
    if "*" in names or not is_local(listener):
        return None
    return names.union(_LOOPBACK, [listener.getsockname()[0]])


def is_local(listener: socket.socket) -> bool:
    """Whether only this machine can reach a listening socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def named(header: bytes) -> str:
    """The name in a Host header, without its port.

    Examples
    --------
    >>> named(b"LocalHost:8000"), named(b"[::1]:8000")
    ('localhost', '::1')
    """
    text = header.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
