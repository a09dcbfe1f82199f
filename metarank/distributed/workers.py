"""The client of the cluster that is worked on."""

from __future__ import annotations

from typing import Any

from distributed import Client, get_client

# What is sent along with the first of many tasks is part of the graph, and no mistake.
QUIET: dict[str, Any] = {"distributed.admin.large-graph-warning-threshold": "1 PB"}


def check_client(client: Any) -> Client:
    """The client to work with.

    Raises
    ------
    TypeError, ValueError
        If it is not a client, there is none, it is closed, or its cluster has no worker.
    """
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "client must be a distributed.Client, and there is none: make one first"
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client or None, got {client!r:.80}")
    if client.asynchronous:
        raise ValueError("client must be a synchronous one, got one with asynchronous=True")
    if client.status != "running":
        raise ValueError(f"client must be connected to a scheduler, got one that is {client.status!r}")
    return client
