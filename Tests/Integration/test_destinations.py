"""Where the gateway does not go: checked on the resolved address, the one that is connected to."""

import signal
import socket

import pytest
from support.gateway import free_port
from support.origin import reply
from support.wire import request

CLOSED = {"access": {"destinations": {"allow": [], "deny": []}}}

FORBIDDEN = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::1]", "[::]", "localhost",
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "[fd00::1]",
    "169.254.1.1", "[fe80::1]", "169.254.169.254", "[fd00:ec2::254]", "100.100.100.200",
    "100.64.0.1", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]",
    "224.0.0.1", "255.255.255.255", "[ff02::1]",
]


@pytest.fixture(scope="module")
def closed_gateway(tmp_path_factory, session_dns, request):
    import shutil

    from conftest import Gateways, kept_if_failed
    folder = tmp_path_factory.mktemp("closed")
    made = Gateways(folder, session_dns)
    yield made(CLOSED)
    with kept_if_failed(folder, request.node):
        made.finish()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("host", FORBIDDEN)
def test_an_address_that_is_not_public_is_refused(closed_gateway, host):
    response = closed_gateway.get(f"http://{host}:8099/", Accept="application/json")
    assert response.status == 403
    assert response.proxy_status["error"] == "destination_ip_prohibited"
    assert response.json()["reason"]


@pytest.mark.parametrize("host", FORBIDDEN)
def test_a_tunnel_to_an_address_that_is_not_public_is_refused(closed_gateway, host):
    wire, response = closed_gateway.connect(f"{host}:443")
    wire.close()
    assert response.status == 403


@pytest.mark.parametrize("host", [
    "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.1", "0x7f.1", "127.0.0.1."])
def test_other_spellings_of_loopback_lead_nowhere(closed_gateway, origin, host):
    there = origin(lambda _: reply(b"inside"))
    response = closed_gateway.get(f"http://{host}:{there.port}/")
    assert response.status in (400, 403, 502)
    assert there.accepted == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.1.1", "169.254.169.254", "::1", "fd00::1",
                                     "::ffff:127.0.0.1"])
def test_a_name_that_resolves_to_such_an_address_is_refused(gateway, dns, origin, address):
    there = origin(lambda _: reply(b"inside"))
    dns.set("innocent.example", address)
    running = gateway(CLOSED)
    response = running.get(f"http://innocent.example:{there.port}/")
    assert response.status == 403
    assert response.proxy_status["error"] == "destination_ip_prohibited"
    assert there.accepted == 0


def test_every_resolved_address_is_checked(gateway, dns, origin):
    """One allowed address among forbidden ones is used; the forbidden ones never are."""
    # A port that is free at both addresses.
    port = free_port()
    there = origin(lambda _: reply(b"allowed"), listener=socket.create_server(("127.0.0.1", port)))
    with socket.create_server(("127.0.0.2", port)) as forbidden:
        forbidden.settimeout(0)
        dns.set("mixed.example", "127.0.0.2", "127.0.0.1", "10.0.0.1")
        running = gateway({"access": {"destinations": {"allow": ["127.0.0.1/32"]}}})
        for _ in range(5):
            assert running.get(f"http://mixed.example:{there.port}/").body == b"allowed"
        with pytest.raises(BlockingIOError):
            forbidden.accept()


def test_rebinding_does_not_help(gateway, dns, origin):
    """A name whose answer changes to a forbidden address is refused as soon as that is used."""
    there = origin(lambda _: reply(b"inside", "200 OK", "Connection: close"))
    dns.set("rebind.example", "127.0.0.1", ttl=0)
    running = gateway({"access": {"destinations": {"allow": ["127.0.0.1/32"]}}})
    assert running.get(f"http://rebind.example:{there.port}/").status == 200
    dns.set("rebind.example", "127.0.0.9", ttl=0)
    assert running.get(f"http://rebind.example:{there.port}/").status == 403
    assert there.accepted == 1


@pytest.mark.parametrize("allow", [["127.0.0.0/8"], ["127.0.0.1"]])
def test_a_network_or_an_address_can_be_allowed(gateway, dns, origin, allow):
    there = origin(lambda _: reply(b"inside"))
    dns.set("inside.example", "127.0.0.1")
    running = gateway({"access": {"destinations": {"allow": allow}}})
    assert running.get(f"http://inside.example:{there.port}/").body == b"inside"


@pytest.mark.parametrize("address", [
    "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "169.254.1.1", "169.254.169.254",
    "100.100.100.200", "fd00:ec2::254", "::ffff:127.0.0.1"])
def test_a_name_opens_neither_loopback_nor_link_local_nor_metadata(gateway, dns, origin, address):
    """Whoever answers for an allowed name does not choose what of this host it opens."""
    there = origin(lambda _: reply(b"inside"))
    dns.set("inside.example", address)
    running = gateway({"access": {"destinations": {"allow": ["inside.example"]}}})
    response = running.get(f"http://inside.example:{there.port}/")
    assert response.status == 403
    assert b"add its address or network to access.destinations.allow" in response.body
    assert there.accepted == 0
    wire, refused = running.connect(f"inside.example:{there.port}")
    wire.close()
    assert refused.status == 403


def test_an_address_with_a_port_is_an_address(gateway, origin):
    there, other = origin(lambda _: reply(b"inside")), origin(lambda _: reply(b"other"))
    running = gateway({"access": {"destinations": {"allow": [f"127.0.0.1:{there.port}"]}}})
    assert running.get(there.url("/")).body == b"inside"
    assert running.get(other.url("/")).status == 403


@pytest.mark.parametrize("deny", [["127.0.0.0/8"], ["127.0.0.1"], ["denied.test"], ["**.test"]])
def test_deny_wins_over_allow(gateway, origin, deny):
    there = origin(lambda _: reply(b"inside"))
    running = gateway({"access": {"destinations": {
        "allow": ["127.0.0.0/8", "denied.test"], "deny": deny}}})
    response = running.get(f"http://denied.test:{there.port}/")
    assert response.status == 403
    assert b"access.destinations.deny" in response.body
    assert b"access.destinations.allow" not in response.body, "which would not help"
    assert there.accepted == 0


def test_a_destination_may_be_allowed_on_the_command_line(gateway, origin):
    there = origin(lambda _: reply(b"inside"))
    running = gateway(CLOSED, "--allow-destination", "127.0.0.1")
    assert running.get(there.url("/")).body == b"inside"


def own_listener(response) -> bool:
    return response.status == 403 and b"own-listener-refused" in response.body


@pytest.mark.parametrize("host", [
    "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "own.test", "both.test"])
@pytest.mark.parametrize("listener", ["proxy", "admin"])
def test_the_gateway_does_not_connect_to_itself(gateway, dns, host, listener):
    """However its address is written, by CONNECT and by an absolute URL: else a CONNECT within a
    CONNECT could nest until the descriptors run out."""
    dns.set("own.test", "127.0.0.1")
    # Nothing listens at the other address, which is no news to the client.
    dns.set("both.test", "127.0.0.1", "::1")
    running = gateway({"access": {"destinations": {"allow": ["0.0.0.0/0", "::/0"]}}})
    port = running.listeners[listener][1]
    wire, response = running.connect(f"{host}:{port}")
    wire.close()
    assert own_listener(response)
    assert own_listener(running.get(f"http://{host}:{port}/"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "[::ffff:127.8.9.10]", "0.0.0.0"])
def test_a_gateway_listening_on_all_addresses_does_not_connect_to_itself(gateway, host):
    running = gateway({
        "listeners": [{"name": "proxy", "address": "0.0.0.0:0", "kind": "forward"}],
        "access": {"destinations": {"allow": ["0.0.0.0/0", "::/0"]}}})
    port = running.listeners["proxy"][1]
    running.listeners["proxy"] = ("127.0.0.1", port)
    assert own_listener(running.get(f"http://{host}:{port}/"))


def test_a_listener_of_a_reload_is_its_own_too(gateway):
    from support.gateway import free_port
    running = gateway({"workers": 2})
    port = free_port()
    running.write_config({**running.config, "listeners": [
        *running.config["listeners"],
        {"name": "more", "address": f"127.0.0.1:{port}", "kind": "forward"}]})
    running.signal(signal.SIGHUP)
    running.wait_log("configuration reloaded")
    assert own_listener(running.get(f"http://127.0.0.1:{port}/"))


def test_a_reverse_listener_may_lead_to_another_listener(gateway):
    """The operator's choice; the way back to where a request was is found by Via."""
    from support.gateway import free_port
    port = free_port()
    running = gateway({"admin": {"address": f"127.0.0.1:{port}"}, "listeners": [
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://127.0.0.1:{port}"}]})
    assert running.get("/healthz", "back").status == 200


def test_a_loop_through_another_gateway_is_bounded(gateway):
    """Two reverse listeners that point at each other: the request ends."""
    from support.gateway import free_port
    one, two = free_port(), free_port()
    running = gateway({"listeners": [
        {"name": "one", "address": f"127.0.0.1:{one}", "kind": "reverse",
         "upstream": f"http://127.0.0.1:{two}"},
        {"name": "two", "address": f"127.0.0.1:{two}", "kind": "reverse",
         "upstream": f"http://127.0.0.1:{one}"}], "timeouts": {"firstByte": "2s"}})
    assert running.ask("GET / HTTP/1.1\r\nHost: loop.test\r\n\r\n", "one").status >= 400


@pytest.mark.parametrize("clients", [["10.0.0.0/8"], ["::1/128"], ["127.0.0.2/32"]])
def test_clients_of_other_networks_are_refused(gateway, origin, clients):
    there = origin(lambda _: reply())
    running = gateway({"access": {"clients": clients}})
    try:
        response = running.get(there.url("/"))
    except (ConnectionError, AssertionError, OSError):
        return
    except Exception as error:  # closed without a word
        assert type(error).__name__ == "Closed"
        return
    assert response.status == 403
    assert there.accepted == 0


def test_requests_to_denied_names_ask_no_name_server(gateway, dns):
    running = gateway({"access": {"destinations": {"deny": ["never.example"]}}})
    assert running.ask(request("http://never.example/")).status == 403
    assert dns.asked("never.example") == 0
