"""The ways on which a request reaches a server by TLS that the gateway speaks itself."""

from __future__ import annotations

from typing import Any

from .interception import ask_inside
from .wire import request

WAYS = ["upgrade", "https target", "reverse", "interception"]


def prepare(config: dict[str, Any], pki, way: str, host: str, port: int) -> dict[str, Any]:
    """The configuration with what a way needs; its first entry of `hosts` is the server's, and
    upgrades."""
    config["listeners"] = [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"https://{host}:{port}"}]
    if way == "interception":
        config["hosts"][0]["intercept"] = True
        config["interception"] = pki.interception.section
    return config


def ask_by(way: str, running, host: str, port: int):
    """The answer to a request that goes there on a way."""
    if way == "interception":
        return ask_inside(running, host, port, request("/", host=f"{host}:{port}"))
    if way == "reverse":
        return running.ask(request("/", host="back"), "back")
    scheme = "https" if way == "https target" else "http"
    return running.ask(request(f"{scheme}://{host}:{port}/"))
