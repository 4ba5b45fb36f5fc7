"""Fixtures of the tests of HTTP/2 towards servers, for modules that import them by name."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest

from .gateway import Gateway
from .http2upstream import H2, configuration
from .interception import HOST


@pytest.fixture(scope="module")
def context(pki) -> Callable[[], ssl.SSLContext]:
    """A server's TLS, in which either version may be chosen."""
    return lambda: pki.intermediate.issue(HOST).server_context(alpn=H2)


@pytest.fixture
def start(gateway, pki) -> Callable[..., Gateway]:
    """start(host, config): a gateway with an entry for the host."""
    return lambda host=None, **config: gateway(configuration(pki, host, **config))


@pytest.fixture
def running(start) -> Gateway:
    return start()
