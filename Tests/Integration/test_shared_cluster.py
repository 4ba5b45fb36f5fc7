"""Gateways that share a cluster of redis-servers: what one has stored the others find, whichever
master has it; and a master that fails costs what it had, and no request."""

from __future__ import annotations

import pytest
from support.cluster import Cluster
from support.fleet import get, is_hit, is_shared_hit, is_up, share, stored
from support.fleetstorm import CONFIGURATION, Objects, purge, record, storm
from support.gateway import Gateway
from support.origin import Request, reply
from support.wait import SLOWDOWN, until

pytestmark = pytest.mark.timeout(120 * min(SLOWDOWN, 5))
FRESH = "Cache-Control: max-age=600"


@pytest.fixture
def cluster(engines) -> Cluster:
    return Cluster(engines)


class Site:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, seen: Request) -> bytes:
        self.count += 1
        return reply(b"%d" % self.count, "200 OK", FRESH, "Surrogate-Key: all")


@pytest.fixture
def there(origin):
    return origin(Site())


def wait_nodes(running: Gateway, count: int, timeout: float = 20) -> None:
    """Until so many masters are in use."""
    until(lambda: running.metrics().get('pinfold_cache_shared_nodes{state="used"}') == count,
          lambda: f"{count} nodes are in use:\n{running.log()}", timeout)


def test_what_one_has_stored_is_found_on_every_master_and_purged_from_all(fleet, cluster, there):
    gateways = fleet(2, url=None, cluster=cluster.places[:1])
    for running in gateways:
        wait_nodes(running, 3)
    paths = [f"/{number}" for number in range(30)]
    bodies = {path: get(gateways[0], there.url(path)).body for path in paths}
    until(lambda: stored(gateways[0]) == len(paths), "all are in the cluster")
    assert all(cluster.stored(number) > 0 for number in range(3))
    for path in paths:
        response = get(gateways[1], there.url(path))
        assert is_shared_hit(response) and response.body == bodies[path], path
    assert set(purge(gateways[0], {"tags": ["all"]})["confirmed"]) == {"gateway-0", "gateway-1"}
    for path in paths:
        assert not is_hit(get(gateways[1], there.url(path))), path
    status = gateways[1].admin_get("/api/v1/status").json()["cache"]["shared"]
    assert status["engine"] == f"the cluster of {cluster.places[0]}"


def test_what_an_unsafe_request_invalidates_is_invalid_on_every_master(fleet, cluster, there):
    gateways = fleet(2, url=None, cluster=cluster.places)
    for running in gateways:
        wait_nodes(running, 3)
    for number in range(9):
        url = there.url(f"/{number}")
        old = share(gateways[0], url).body
        assert is_shared_hit(get(gateways[1], url))
        assert get(gateways[1], url, method="POST").status == 200
        assert not is_hit(get(gateways[1], url))
        until(lambda url=url, old=old: get(gateways[0], url).body != old, "the other has heard of it", 10)


def test_each_node_is_verified_and_a_user_needs_no_more_than_the_page_says(fleet, engines, there, pki, workspace):
    # Nodes are clients of each other.
    leaf = pki.root.issue("127.0.0.1", usage=None)
    cluster = Cluster(engines, replicas=False, tls=(
        "--tls-cert-file", str(leaf.pem_file), "--tls-key-file", str(leaf.key_file),
        "--tls-ca-cert-file", str(pki.root.pem_file), "--tls-auth-clients", "no"))
    for node in cluster.nodes:
        node.command("ACL", "SETUSER", "pinfold", "on", ">s3cret", "~pinfold:*", "&pinfold:*", "+@all",
                     "-@dangerous", "+info", "+role")
    password = workspace / "password"
    password.write_text("s3cret\n")
    password.chmod(0o600)
    shared = {"url": None, "cluster": [f"rediss://127.0.0.1:{cluster.tls_ports[1]}"], "user": "pinfold",
              "passwordFile": str(password)}
    gateways = fleet(2, {"tls": {"roots": [str(pki.root.pem_file)]}}, **shared)
    for running in gateways:
        wait_nodes(running, 3)
    for number in range(6):
        share(gateways[0], there.url(f"/{number}"))
        assert is_shared_hit(get(gateways[1], there.url(f"/{number}")))
    # Without that root there is no node to ask.
    stranger = fleet(0).add(wait=False, **shared)
    until(lambda: stranger.metrics().get('pinfold_cache_shared_errors_total{reason="tls"}', 0) > 0,
          lambda: f"it is not trusted:\n{stranger.log()}", 10)
    assert not is_up(stranger)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["home", "other"])
def test_a_master_is_killed_and_its_replica_takes_its_place(fleet, cluster, origin, which):
    objects = Objects()
    server = origin(objects.answer)
    number = cluster.home if which == "home" else cluster.others[0]
    gateways = fleet(2, CONFIGURATION, url=None, cluster=cluster.places, grace="2s", timeout="100ms")
    for running in gateways:
        wait_nodes(running, 3)
    with storm(gateways, server, objects) as made:
        cluster.kill(number)
        # The others go on: the engine as a whole is away only without the home node.
        until(lambda: not all(running.metrics().get('pinfold_cache_shared_nodes{state="used"}') == 3
                              for running in gateways), "the master is missed", 20)
        if which == "other":
            assert all(is_up(running) for running in gateways)
        until(lambda: cluster.is_master(number + cluster.masters), "the replica is a master", 20)
        for running in gateways:
            wait_nodes(running, 3)
        seconds = made.until_hits(40)
        made.until_confirmed(40)
        made.end()
    record(f"a master of a cluster killed ({which})", made, seconds)
    assert not made.problems(), "\n".join(made.problems()[:20])
    assert made.tally.hits > 100 and made.tally.purges > 2, vars(made.tally)
    assert not made.tally.failed
