"""Where the gateway does not go: checked on the resolved address, the one that is connected to."""

import socket

import pytest
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
def closed_gateway(tmp_path_factory, session_dns):
    import shutil

    from conftest import Gateways
    folder = tmp_path_factory.mktemp("closed")
    made = Gateways(folder, session_dns)
    yield made(CLOSED)
    made.finish()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("host", FORBIDDEN)
def test_an_address_that_is_not_public_is_refused(closed_gateway, host):
    response = closed_gateway.get(f"http://{host}:8099/", Accept="application/json")
    assert response.status == 403
    assert response.proxy_status["error"] == "destination_ip_prohibited"
    assert response.json()["reason"]


@pytest.mark.parametrize("host", FORBIDDEN)
def test_and_so_is_a_tunnel_to_it(closed_gateway, host):
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
    there = origin(lambda _: reply(b"allowed"))
    with socket.create_server(("127.0.0.2", there.port)) as forbidden:
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


@pytest.mark.parametrize("allow", [
    ["127.0.0.0/8"], ["127.0.0.1"], ["inside.example"], ["*.example"], ["**.example"]])
def test_a_network_an_address_or_a_name_can_be_allowed(gateway, dns, origin, allow):
    there = origin(lambda _: reply(b"inside"))
    dns.set("inside.example", "127.0.0.1")
    running = gateway({"access": {"destinations": {"allow": allow}}})
    assert running.get(f"http://inside.example:{there.port}/").body == b"inside"


def test_an_allowed_name_does_not_allow_others(gateway, dns, origin):
    there = origin(lambda _: reply(b"inside"))
    dns.set("inside.example", "127.0.0.1")
    dns.set("outside.example", "127.0.0.1")
    running = gateway({"access": {"destinations": {"allow": ["inside.example"]}}})
    assert running.get(f"http://inside.example:{there.port}/").status == 200
    assert running.get(f"http://outside.example:{there.port}/").status == 403
    assert running.get(there.url("/")).status == 403


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


def test_allow_destination_on_the_command_line(gateway, origin):
    there = origin(lambda _: reply(b"inside"))
    running = gateway(CLOSED, "--allow-destination", "127.0.0.1")
    assert running.get(there.url("/")).body == b"inside"


def test_the_gateway_does_not_talk_to_itself(gateway):
    """A request to its own listener is refused, not a loop."""
    running = gateway({"workers": 1})
    url = "http://%s:%d/" % running.proxy
    response = running.get(url)
    assert response.status in (400, 403, 502, 508)
    assert running.get(url).status == response.status


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
