"""Fixtures: the gateway on a configuration of the test's own, and everything around it."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import pki as certificates
from support.dns import NameServer
from support.fleet import Engine, Fleet
from support.gateway import BINARY, Gateway, merged, raise_descriptor_limit
from support.http2origin import HTTP2Origin
from support.interception import InterceptionAuthority
from support.origin import HTTPOrigin, Origin, serving
from support.programs import Toolchains
from support.reports import Collector
from support.revocation import Lists
from support.servers import HTTPBin, Nginx
from support.wait import SLOWDOWN
from support.ways import NAMES, WAYS, SharedGateways, Through

# The configuration on which a test's own stands: every port chosen by the system, origins on
# loopback allowed, names answered by the test's own server.
BASE: dict[str, Any] = {
    "workers": 2,
    "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
    "admin": {"address": "127.0.0.1:0"},
    "access": {
        "clients": ["127.0.0.0/8", "::1/128"],
        "connectPorts": "any",
        "destinations": {"allow": ["127.0.0.0/8", "::1/128"]},
    },
    "cache": {"memory": "16MiB", "disk": "64MiB", "path": "cache"},
    "log": {"level": "info", "access": {"path": "access.log", "format": "json"}},
}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    raise_descriptor_limit()
    # A folder of this run's own, gone at its end; the processes of a parallel run get theirs in it.
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        config.option.basetemp = tempfile.mkdtemp(prefix="pinfold-tests-")
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))
    if not config.option.collectonly and not BINARY.exists():
        pytest.exit(f"no gateway at {BINARY}: build it, or set PINFOLD_BINARY", returncode=3)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Each process begins with its part of the long ones, so that all end at about the same time.
    # xdist gives each as many tests as the others, in their order.
    parts = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [item for item in items
            if item.get_closest_marker("large") or item.get_closest_marker("slow")]
    marked = set(long)
    others = [item for item in items if item not in marked]
    items.clear()
    for remaining in range(parts, 0, -1):
        share, ahead = (len(long) + len(others)) // remaining, -(-len(long) // remaining)
        items += long[:ahead] + others[:max(0, share - ahead)]
        del long[:ahead], others[:max(0, share - ahead)]
    if SLOWDOWN > 1:
        for item in items:
            item.add_marker(pytest.mark.timeout(120 * min(SLOWDOWN, 5)))


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory) -> Iterator[None]:
    """What a gateway or command keeps where no folder is named is not in the user's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def system_roots(pki: PKI) -> Iterator[None]:
    """The gateways find one root in the file of the system's roots, not 140: reading those takes a
    third of the processor time of a start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gateway, "environment", {"SSL_CERT_FILE": str(pki.system_root.pem_file)})
        yield


# Whether a test, or one of a module's, has failed by now.
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        for node in item.listchain():
            node.stash[FAILED] = True
    return report


@contextlib.contextmanager
def kept_if_failed(folder: Path, node: pytest.Item | pytest.Collector) -> Iterator[None]:
    """Around what ends the gateways in `folder`: what they wrote and were given to read is copied to
    the folder PINFOLD_TEST_RESULTS, if there is one, should the test have failed or fail by this."""
    try:
        yield
    except BaseException:
        node.stash[FAILED] = True
        raise
    finally:
        results = os.environ.get("PINFOLD_TEST_RESULTS")
        if results and node.stash.get(FAILED, False):
            # A module's tests may be split between processes, each with gateways of its own.
            part = node.name if isinstance(node, pytest.Item) else os.environ.get(
                "PYTEST_XDIST_WORKER", "module")
            name = re.sub(r"[^\w.-]+", "-", f"{node.path.stem}-{part}")[:150]
            for file in folder.glob("gateway-*/*"):
                if file.suffix in (".log", ".yaml") and file.is_file():
                    target = Path(results) / "gateways" / name / file.relative_to(folder)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, target)


class Gateways:
    """Starts gateways and ends them all, looking for a crash in each one's log."""

    def __init__(self, folder: Path, server: NameServer):
        self.folder = folder
        self.server = server
        self.all: list[Gateway] = []

    def __call__(
        self, config: dict | None = None, *arguments: str, start: bool = True, preexec: Any = None
    ) -> Gateway:
        base = merged(BASE, {"resolver": {"servers": [self.server.address]}})
        folder = self.folder / f"gateway-{len(self.all)}"
        folder.mkdir()
        made = Gateway(folder, merged(base, config or {}), list(arguments), preexec)
        self.all.append(made)
        return made.start() if start else made

    def finish(self) -> None:
        problems = []
        for one in self.all:
            try:
                one.finish()
            except AssertionError as problem:
                problems.append(problem)
            if one.process is not None and one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        if problems:
            raise problems[0]


@pytest.fixture(scope="session")
def session_dns() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


@pytest.fixture
def dns() -> Iterator[NameServer]:
    """A name server of the test's own; `gateway` asks it when the test uses both."""
    server = NameServer()
    yield server
    server.close()


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is gone after the test, whatever is in it."""
    folder = tmp_path_factory.mktemp("pinfold")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def gateway(
    workspace: Path, session_dns: NameServer, request: pytest.FixtureRequest
) -> Iterator[Gateways]:
    """gateway(config, *arguments): a running gateway; `config` lies on top of BASE."""
    server = request.getfixturevalue("dns") if "dns" in request.fixturenames else session_dns
    made = Gateways(workspace, server)
    yield made
    with kept_if_failed(workspace, request.node):
        made.finish()


@pytest.fixture(scope="module")
def module_gateways(
    tmp_path_factory: pytest.TempPathFactory, session_dns: NameServer,
    request: pytest.FixtureRequest
) -> Iterator[Gateways]:
    """As `gateway`, for those that several tests of a module share."""
    folder = tmp_path_factory.mktemp("shared")
    made = Gateways(folder, session_dns)
    yield made
    with kept_if_failed(folder, request.node):
        made.finish()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shared_gateway(module_gateways: Gateways) -> Gateway:
    """One gateway on BASE for a module's tests that leave nothing behind in it."""
    return module_gateways({"cache": {"enabled": False}})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "through" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("ways")
        metafunc.parametrize("through", marker.args if marker else WAYS, indirect=True)


@pytest.fixture(scope="module")
def shared_ways(module_gateways: Gateways, pki: PKI) -> Iterator[SharedGateways]:
    leaf = pki.intermediate.issue(*NAMES)
    made = SharedGateways(module_gateways, pki.interception.section, [str(pki.root.pem_file)],
                          leaf.server_context)
    yield made
    made.close()


@pytest.fixture
def through(
    shared_ways: SharedGateways, request: pytest.FixtureRequest
) -> Iterator[Through]:
    """Servers and a gateway before them, by each of the ways in turn."""
    with contextlib.ExitStack() as stack:
        yield Through(request.param, shared_ways, lambda: request.getfixturevalue("gateway"),
                      lambda made: stack.enter_context(serving(made)))


@pytest.fixture
def origin() -> Iterator[Callable[..., HTTPOrigin]]:
    """origin(handler, **options): an origin that answers request by request."""
    with contextlib.ExitStack() as stack:

        def make(handler: Callable, **options: Any) -> HTTPOrigin:
            return stack.enter_context(serving(HTTPOrigin(handler, **options)))

        yield make


@pytest.fixture
def scripted_origin() -> Iterator[Callable[..., Origin]]:
    """scripted_origin(script, **options): an origin that runs `script` on every connection."""
    with contextlib.ExitStack() as stack:

        def make(script: Callable, **options: Any) -> Origin:
            return stack.enter_context(serving(Origin(script, **options)))

        yield make


@pytest.fixture
def http2_origin() -> Iterator[Callable[..., HTTP2Origin]]:
    """http2_origin(handler, **options): an origin that speaks HTTP/2 and answers by stream."""
    with contextlib.ExitStack() as stack:
        yield lambda *handler, **options: stack.enter_context(
            serving(HTTP2Origin(*handler, **options)))


@pytest.fixture
def collector() -> Iterator[Callable[..., Collector]]:
    """collector(**options): a server that takes reports of pin failures."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(serving(Collector(**options)))


class PKI:
    """The authorities of a test session. `root` is the one that tests trust."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.root = certificates.root(folder, "Trusted root")
        self.intermediate = self.root.intermediate("Trusted intermediate")
        self.other_root = certificates.root(folder, "Another trusted root")
        self.rogue_root = certificates.root(folder, "Rogue root")
        # No certificate of a test's is by this one.
        self.system_root = certificates.root(folder, "System's root")

    def self_signed(self, *names: str) -> certificates.Certificate:
        return certificates.self_signed(self.folder, *names)

    @functools.cached_property
    def interception(self) -> InterceptionAuthority:
        """The authority that clients of intercepted tunnels trust."""
        folder = self.folder / "interception"
        folder.mkdir()
        return InterceptionAuthority(folder)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> PKI:
    return PKI(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def lists(workspace: Path) -> Lists:
    """Files of lists of revoked certificates."""
    return Lists(workspace)


@pytest.fixture(scope="session")
def authority(pki: PKI) -> InterceptionAuthority:
    return pki.interception


@pytest.fixture(scope="session")
def toolchains(tmp_path_factory: pytest.TempPathFactory) -> Toolchains:
    # The folder of the whole run: its processes share what one of them has built.
    base = tmp_path_factory.getbasetemp()
    return Toolchains(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    server = Nginx(folder)
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def engines(workspace: Path) -> Iterator[Callable[..., Engine]]:
    """engines(*options): a redis-server with these options of its command line."""
    made: list[Engine] = []

    def make(*options: str, **arguments: Any) -> Engine:
        made.append(Engine(workspace / f"engine-{len(made)}", *options, **arguments))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def engine(engines: Callable[..., Engine]) -> Engine:
    """A redis-server of the test's own."""
    return engines()


@pytest.fixture
def fleet(gateway: Gateways, engine: Engine, workspace: Path) -> Callable[..., Fleet]:
    """fleet(n, config, **shared): n gateways on the engine, all up; `shared` lies on top of
    `cache.shared`. `fleet(0)` is one to add gateways to."""
    made = Fleet(gateway, workspace, engine)

    def make(count: int = 2, config: dict | None = None, **shared: Any) -> Fleet:
        for _ in range(count):
            made.add(config, **shared)
        return made

    return make


@pytest.fixture(scope="session")
def httpbin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTTPBin]:
    folder = tmp_path_factory.mktemp("httpbin")
    server = HTTPBin(folder / "run")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)
