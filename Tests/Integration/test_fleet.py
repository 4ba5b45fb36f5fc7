"""The fleet's command: who is there, and one policy for all, published, for a share first, and rolled
back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fleet import Fleet, wait_shared
from support.gateway import Gateway, run_pinfold
from support.livepage import live_page
from support.origin import reply
from support.policies import Signer, alarms, policy, serial, start_unready, wait_serial
from support.wait import until

# By their names, gateway-0 to gateway-2 take a policy that is for so many hundredths or more.
SHARES = [97, 88, 65]


def deny(host: str) -> dict:
    return {"access": {"rules": [{"name": f"no-{host}", "hosts": [host], "action": "deny",
                                  "status": 451}]}}


DENY, OTHER = deny("denied.test"), deny("other.test")


@pytest.fixture
def signer() -> Signer:
    return Signer()


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"))


@pytest.fixture
def unready(fleet, signer: Signer) -> Callable[..., Fleet]:
    """unready(n): gateways that have no policy yet, and wait for one by way of the engine."""
    def start(count: int = 3, keys: list[Signer] | None = None) -> Fleet:
        made = fleet(0)
        for _ in range(count):
            add(made, keys or [signer])
        return made
    return start


def add(made: Fleet, keys: list[Signer]) -> Gateway:
    running = made.add(configuration(keys), start=False)
    start_unready(running)
    wait_shared(running)
    return running


def configuration(keys: list[Signer]) -> dict:
    return {"policy": {"engine": True, "publicKeys": [key.public for key in keys],
                       "interval": "1s"}}


def pinfold(running: Gateway, *arguments: str, **options):
    return run_pinfold("fleet", *arguments, "--admin", "%s:%d" % running.admin, timeout=60,
                       **options)


def publish(running: Gateway, folder: Path, content: bytes, *options: str, code: int = 0) -> str:
    file = folder / "signed.yaml"
    file.write_bytes(content)
    done = pinfold(running, "publish", str(file), *options)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def view(running: Gateway) -> dict:
    return json.loads(pinfold(running, "status", "--json").stdout)


def denied(running: Gateway, there) -> set[str]:
    return {host for host in ("denied.test", "other.test")
            if running.get(f"http://{host}:{there.port}/").status == 451}


def info(running: Gateway) -> str:
    """The hash of the policy in force, as metrics have it."""
    found = [name for name in running.metrics() if name.startswith("pinfold_policy_info")]
    assert len(found) == 1
    return re.search(r'hash="([0-9a-f]{64})"', found[0])[1]


def test_a_policy_is_published_for_all(unready, signer, there, tmp_path):
    gateways = unready()
    assert all(running.admin_get("/readyz").status == 503 for running in gateways)
    said = publish(gateways[1], tmp_path, policy(DENY, 7, signer))
    assert re.match(r"serial 7 \([0-9a-f]{12}\) is published for all gateways\n", said)
    assert said.splitlines()[1:] == [f"gateway-{number}  taken" for number in range(3)]
    for running in gateways:
        assert serial(running) == 7 and denied(running, there) == {"denied.test"}
        until(lambda running=running: running.admin_get("/readyz").status == 200, "it is ready")
        running.wait_log(r"the policy is in force.*hash=\"?[0-9a-f]{64}")
    assert len({info(running) for running in gateways}) == 1
    shown = run_pinfold("policy", "show", "--admin", "%s:%d" % gateways[2].admin)
    assert shown.returncode == 0 and "serial 7 from the fleet's engine" in shown.stdout


def test_a_share_takes_a_policy_first(unready, signer, there, tmp_path):
    gateways = unready()
    # The first one is taken by all that have none.
    publish(gateways[0], tmp_path, policy(DENY, 1, signer), "--canary", "1%")
    said = publish(gateways[0], tmp_path, policy(OTHER, 2, signer), "--canary", "70%")
    assert said.splitlines()[1:] == [
        "gateway-0  keeps its policy (takes one from 97 % on)",
        "gateway-1  keeps its policy (takes one from 88 % on)", "gateway-2  taken"]
    assert [serial(running) for running in gateways] == [1, 1, 2]
    assert [denied(running, there) for running in gateways] == [
        {"denied.test"}, {"denied.test"}, {"other.test"}]
    status = pinfold(gateways[2], "status")
    assert status.returncode == 1
    assert re.search(r"policy serial 1 \([0-9a-f]{12}\): gateway-0, gateway-1\n", status.stdout)
    assert re.search(r"policy serial 2 \([0-9a-f]{12}\): gateway-2\n", status.stdout)
    gateways[0].wait_log(r"published for a share of the gateways, without this one.*takes_from=\"?97")
    # From any of them, whether it has it or not.
    rest = pinfold(gateways[1], "publish", "--rest")
    assert rest.returncode == 0, rest.stderr
    assert rest.stdout.count("taken") == 3
    assert all(denied(running, there) == {"other.test"} for running in gateways)


def test_a_share_without_any_gateway_is_told(unready, signer, tmp_path):
    gateways = unready(2)
    publish(gateways[0], tmp_path, policy(DENY, 1, signer))
    said = publish(gateways[0], tmp_path, policy(OTHER, 2, signer), "--canary", "10%")
    assert "no gateway takes a policy that is for 10 %: the first one does from 88 % on" in said
    assert [serial(running) for running in gateways] == [1, 1]


def test_a_rollback_is_one_command(unready, signer, there, tmp_path):
    gateways = unready()
    key = signer.write(tmp_path / "policy.key")
    publish(gateways[0], tmp_path, policy(DENY, 7, signer))
    publish(gateways[0], tmp_path, policy(OTHER, 8, signer))
    done = pinfold(gateways[2], "rollback", "--policy-key", str(key))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.startswith("serial 7 is signed again as 9\nserial 9 (")
    assert done.stdout.count("taken") == 3
    for running in gateways:
        assert serial(running) == 9 and denied(running, there) == {"denied.test"}
    again = pinfold(gateways[1], "rollback", "--policy-key", str(key), "--to", "8", "--days", "3")
    assert again.returncode == 0, again.stderr
    assert [serial(running) for running in gateways] == [10, 10, 10]
    assert denied(gateways[0], there) == {"other.test"}
    unknown = pinfold(gateways[1], "rollback", "--policy-key", str(key), "--to", "3")
    assert unknown.returncode == 1
    assert "serial 3 is not kept by this gateway; expected one of 10, 9, 8, 7" in unknown.stderr


def test_a_canary_is_rolled_back_everywhere(unready, signer, there, tmp_path):
    gateways = unready()
    key = signer.write(tmp_path / "policy.key")
    publish(gateways[0], tmp_path, policy(DENY, 1, signer))
    publish(gateways[0], tmp_path, policy(OTHER, 2, signer), "--canary", "70%")
    # One that has not taken it knows what it is.
    done = pinfold(gateways[0], "rollback", "--policy-key", str(key))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert [serial(running) for running in gateways] == [3, 3, 3]
    assert all(denied(running, there) == {"denied.test"} for running in gateways)


def test_a_rollback_signs_nothing_that_its_key_has_not_signed(unready, signer, tmp_path):
    gateways = unready(1)
    publish(gateways[0], tmp_path, policy(DENY, 7, signer))
    publish(gateways[0], tmp_path, policy(OTHER, 8, signer))
    key = Signer().write(tmp_path / "other.key")
    done = pinfold(gateways[0], "rollback", "--policy-key", str(key))
    assert done.returncode == 1 and "serial 8 is not signed by" in done.stderr
    assert serial(gateways[0]) == 8


@pytest.mark.parametrize(("content", "said"), [
    (lambda one: policy(OTHER, 8, Signer()), "no signature by a key of policy.publicKeys"),
    (lambda one: policy(OTHER, 6, one), "its serial 6 is lower than 7"),
    (lambda one: policy(OTHER, 7, one), "it has the serial 7 of the policy"),
    (lambda one: policy(OTHER, 8, one, expires=-1), "expired at"),
    (lambda one: policy({"listeners": []}, 8, one), "may not be in a policy"),
    (lambda one: policy(OTHER, 8, one).replace(b"other.test", b"others.test"),
     "is not of this content"),
], ids=["key", "older", "same", "expired", "content", "changed"])
def test_what_the_gateway_would_not_take_is_not_published(
        unready, signer, tmp_path, content, said):
    gateways = unready(2)
    publish(gateways[0], tmp_path, policy(DENY, 7, signer))
    assert said in publish(gateways[0], tmp_path, content(signer), code=1)
    assert all(alarms(running) == set() for running in gateways)
    assert view(gateways[0])["gateways"][1]["policy"]["offered"]["serial"] == 7


def test_a_gateway_that_does_not_know_the_key_refuses(unready, signer, there, tmp_path):
    other = Signer()
    gateways = unready(1, [signer, other])
    add(gateways, [other])
    publish(gateways[0], tmp_path, policy(DENY, 1, other))
    said = publish(gateways[0], tmp_path, policy(OTHER, 2, signer), code=1)
    assert "gateway-0  taken\n" in said
    assert re.search(r"gateway-1  refused: it has no signature by a key of policy\.publicKeys", said)
    refusing = gateways[1]
    assert serial(refusing) == 1 and denied(refusing, there) == {"denied.test"}
    assert "refused" in alarms(refusing)
    assert refusing.metric("pinfold_policy_refusals_total", cause="signature") == 1
    refusing.wait_log(r"a policy is refused.*cause=\"?signature")
    status = pinfold(gateways[0], "status")
    assert status.returncode == 1 and "gateway-1 refuses serial 2: it has no signature" in status.stdout
    # With the key it takes it.
    refusing.config["policy"]["publicKeys"].append(signer.public)
    refusing.write_config(refusing.config)
    assert run_pinfold("reload", "--admin", "%s:%d" % refusing.admin).returncode == 0
    wait_serial(refusing, 2)
    until(lambda: alarms(refusing) == set(), "the alarm is over")


def test_a_gateway_starts_without_the_engine_with_its_last_policy(
        unready, engine, signer, there, tmp_path):
    running = unready(1)[0]
    publish(running, tmp_path, policy(DENY, 7, signer))
    stored = running.folder / "cache" / "policy.yaml"
    until(stored.exists, "it is stored")
    engine.stop()
    running.stop()
    running.start()
    assert serial(running) == 7 and denied(running, there) == {"denied.test"}
    until(lambda: "unreachable" in alarms(running), "nothing arrives any longer", 20)
    shown = pinfold(running, "status")
    assert shown.returncode == 1 and "the engine does not answer" in shown.stdout
    failed = publish(running, tmp_path, policy(OTHER, 8, signer), code=1)
    assert "the engine of cache.shared does not answer; nothing was published" in failed
    engine.start()
    wait_shared(running)
    # An engine that has lost everything gets it again.
    assert pinfold(running, "publish", "--rest").returncode == 0
    until(lambda: alarms(running) == set(), "the alarm is over", 20)


def test_a_gateway_that_comes_later_gets_the_policy(unready, signer, tmp_path):
    gateways = unready(1)
    publish(gateways[0], tmp_path, policy(DENY, 7, signer))
    wait_serial(add(gateways, [signer]), 7)


def test_the_status_of_a_fleet(fleet, origin):
    server = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    gateways = fleet(3)
    url = f"http://127.0.0.1:{server.port}/"
    for running in gateways:
        assert running.get(url).status == 200
    until(lambda: len(view(gateways[0])["gateways"]) == 3, "all are there", 20)

    def well() -> bool:
        return pinfold(gateways[0], "status").returncode == 0

    until(well, lambda: pinfold(gateways[0], "status").stdout, 20)
    shown = pinfold(gateways[1], "status").stdout.splitlines()
    assert shown[0] == "3 gateways; all purges are carried out"
    assert shown[1] == "all have no policy"
    assert shown[2].split() == ["GATEWAY", "VERSION", "SINCE", "SEEN", "PURGES", "POLICY",
                                "LOOKUPS", "MEMORY", "DISK", "SHARED"]
    assert [line.split()[0] for line in shown[3:7]] == [
        "gateway-0", "gateway-1", "gateway-2", "all"]
    answer = view(gateways[2])
    assert answer["name"] == "gateway-2" and answer["current"] and answer["agree"]
    assert [one["share"] for one in answer["gateways"]] == SHARES
    until(lambda: view(gateways[0])["cache"]["lookups"] == 3,
          "all have told of their lookups", 20)
    assert view(gateways[0])["cache"]["sharedHits"] <= 2
    until(lambda: gateways[0].metric("pinfold_fleet_members") == 3, "three are counted", 20)
    assert gateways[0].metric("pinfold_fleet_members_behind") == 0
    assert gateways[0].metric("pinfold_fleet_policies") == 1


def test_a_gateway_that_crashed_is_away(fleet):
    gateways = fleet(2)
    until(lambda: len(view(gateways[0])["gateways"]) == 2, "both are there", 20)
    gateways[1].kill()
    until(lambda: [one["away"] for one in view(gateways[0])["gateways"]] == [False, True],
          "it is away", 40)
    status = pinfold(gateways[0], "status")
    assert status.returncode == 1 and re.search(r"gateway-1 .* away", status.stdout)
    until(lambda: gateways[0].metric("pinfold_fleet_members") == 1, "one is counted", 20)
    attention = gateways[0].admin_get("/api/v1/overview").body
    assert b"gateways of the fleet are away: gateway-1" in attention
    # One that is stopped says so.
    gateways[1].start()
    until(lambda: len(view(gateways[0])["gateways"]) == 3, "it is back, as another process", 20)
    gateways[1].stop()
    until(lambda: len(view(gateways[0])["gateways"]) == 2, "it has left", 20)


def test_without_a_fleet_there_is_nothing_to_show(gateway):
    running = gateway()
    for arguments in ["status"], ["publish", "--rest"]:
        done = pinfold(running, *arguments)
        assert done.returncode in (1, 2)
        assert "the gateway shares its cache with no others (cache.shared is not set)" in done.stderr
    assert "fleet" not in json.loads(running.admin_get("/api/v1/overview").body)


def test_the_resources_are_for_operators(fleet, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-16-bytes-or-more")
    token.chmod(0o600)
    running = fleet(1, {"admin": {"tokenFile": str(token), "metrics": "token"}}, wait=False)[0]
    for path in "/api/v1/fleet", "/api/v1/fleet/policy", "/api/v1/fleet/policy/7":
        assert running.admin_get(path).status == 401, path
    assert run_pinfold("fleet", "status", "--admin", "%s:%d" % running.admin,
                       "--token-file", str(token)).returncode in (0, 1)


def test_the_live_page_shows_the_fleet(fleet, workspace):
    gateways = fleet(2)
    until(lambda: len(view(gateways[0])["gateways"]) == 2, "both are there", 20)
    with live_page(workspace / "browser") as page:
        page.looks(1280)
        page.open("http://%s:%d/" % gateways[0].admin)
        page.wait_text("this gateway is gateway-0", "main")
        page.wait_text("gateway-1", "main")
        page.wait_text("no policy on any", "main")
        assert page.barriers() == []
        assert page.problems == []
