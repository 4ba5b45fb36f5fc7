"""Keys of servers that are remembered (`pins: observe`), and pins that are proposed from them."""

from __future__ import annotations

import json
import re
from itertools import takewhile

import yaml
from support.gateway import run_pinfold
from support.observed import (
    Rotating,
    age,
    chains,
    pin,
    record,
    record_file,
    wait_chains,
)
from support.origin import reply
from support.pki import root
from support.reports import Collector
from support.wait import until

HOST = "api.observed.test"
BACKUP = "sha256/" + "A" * 43 + "="
WARNING = "a server without pins shows a key never seen before"


def configuration(pki, entry: dict | None = None, **top: object) -> dict:
    return {
        "hosts": [{"match": [HOST], "upgrade": "https", "pins": "observe", **(entry or {})}],
        "tls": {"roots": [str(pki.root.pem_file)]}, "workers": 1, **top}


def serve(origin, certificate, *fields: str):
    """A server whose certificate changes, and whose connections are used once."""
    turning = Rotating(certificate)
    there = origin(
        lambda _: reply(b"genuine", "200 OK", "Cache-Control: no-store",
                        *(fields or ("Connection: close",))), tls=turning.context)
    return there, turning


def ask(running, there, host: str = HOST) -> None:
    assert running.get(f"http://{host}:{there.port}/").status == 200


def test_what_a_server_shows_is_recorded(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST, "other.test")
    there, _ = serve(origin, leaf)
    config = configuration(pki)
    config["hosts"].append({"match": ["other.test"], "upgrade": "https"})
    running = gateway(config)
    ask(running, there)
    ask(running, there, "other.test")
    (chain,) = wait_chains(running, HOST, 1)
    assert chain["leaf"]["key"] == leaf.pin
    assert chain["leaf"]["fingerprint"].replace(":", "").lower() == leaf.fingerprint
    assert [[one["key"] for one in path] for path in chain["paths"]] == [
        [pki.intermediate.pin, pki.root.pin]]
    assert (chain["verified"], chain["reported"]) == (1, 0)
    assert [one["address"] for one in chain["addresses"]] == ["127.0.0.1"]
    assert "other.test" not in record(running)
    assert record_file(running).stat().st_mode & 0o777 == 0o600
    assert running.metric("pinfold_pin_observed_hosts") == 1
    rows = json.loads(running.admin_get("/api/v1/pins").body)["observed"]
    assert [(row["host"], row["keys"], row["isVerified"]) for row in rows] == [
        (f"{HOST}:{there.port}", 1, True)]
    # What comes later is a count, which is written at the end.
    for _ in range(4):
        ask(running, there)
    running.stop()
    assert chains(running, HOST)[0]["verified"] == 5


def test_requests_on_one_connection_are_one_sighting(gateway, origin, pki):
    there, _ = serve(origin, pki.intermediate.issue(HOST), "X-Nothing: 1")
    running = gateway(configuration(pki))
    for _ in range(5):
        ask(running, there)
    running.stop()
    assert chains(running, HOST)[0]["verified"] == 1


def test_every_host_is_observed_with_all_but_those_that_are_off(gateway, origin, pki):
    there, _ = serve(origin, pki.intermediate.issue(HOST, "other.test", "off.test"))
    running = gateway({
        "hosts": [{"match": ["off.test"], "upgrade": "https", "pins": "off"},
                  {"match": ["**"], "upgrade": "https"}],
        "pins": {"observe": "all"}, "tls": {"roots": [str(pki.root.pem_file)]}})
    for host in (HOST, "other.test", "off.test"):
        ask(running, there, host)
    running.stop()
    assert set(record(running)) == {HOST, "other.test"}


def test_a_new_key_is_told_of(gateway, origin, pki, tmp_path):
    stranger = root(tmp_path, "Another Root")
    collector = Collector()
    try:
        there, turning = serve(origin, pki.intermediate.issue(HOST))
        config = configuration(pki, pins={"reportTo": f"http://127.0.0.1:{collector.port}/pins"})
        config["tls"]["roots"].append(str(stranger.pem_file))
        running = gateway(config)
        ask(running, there)
        first = wait_chains(running, HOST, 1)[0]["leaf"]["key"]
        assert WARNING not in running.log()

        renewed = pki.intermediate.issue(HOST)
        turning.use(renewed)
        ask(running, there)
        line = running.wait_log(f"{WARNING}.*")
        assert "issuer_key=known" in running.log() and renewed.pin in running.log(), line

        strange = stranger.issue(HOST)
        turning.use(strange)
        ask(running, there)
        running.wait_log("issuer_key=new")
        for issuer, count in (("known", 1), ("new", 1)):
            assert running.metric("pinfold_pin_observed_new_keys_total", issuer=issuer) == count
        reports = collector.wait(2)
        assert [one["reason"] for one in reports] == ["new-key"] * 2
        assert reports[1]["hostname"] == HOST and reports[1]["pinset"] == "(observed)"
        assert reports[1]["enforced"] is False
        assert len(reports[1]["validated-certificate-chain"]) == 2
        assert reports[0]["known-pins"] == [f'pin-sha256="{first.removeprefix("sha256/")}"']
        assert "an issuer never seen before" in reports[1]["detail"]
        rows = json.loads(running.admin_get("/api/v1/pins").body)["observed"]
        assert rows[0]["keys"] == 3 and rows[0]["newKey"]
    finally:
        collector.close()


def test_the_record_outlives_restarts_and_kill(gateway, origin, pki):
    there, turning = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki))
    ask(running, there)
    wait_chains(running, HOST, 1)
    running.kill()
    assert len(chains(running, HOST)) == 1
    turning.use(pki.intermediate.issue(HOST))
    running.start()
    assert running.metric("pinfold_pin_observed_hosts") == 1
    ask(running, there)
    # It knows what the process before it has seen.
    running.wait_log(WARNING)
    wait_chains(running, HOST, 2)
    running.restart()
    ask(running, there)
    running.stop()
    found = chains(running, HOST)
    assert [chain["verified"] for chain in found] == [1, 2]


def test_two_gateways_share_the_record(gateway, origin, pki):
    there, turning = serve(origin, pki.intermediate.issue(HOST, "second.test"))
    one = gateway(configuration(pki))
    config = configuration(pki)
    config["hosts"][0]["match"] = [HOST, "second.test"]
    config["cache"] = {"path": str(one.folder / "cache"), "disk": 0}
    two = gateway(config)
    ask(one, there)
    wait_chains(one, HOST, 1)
    turning.use(pki.intermediate.issue(HOST, "second.test"))
    ask(two, there)
    ask(two, there, "second.test")
    wait_chains(one, HOST, 2)
    turning.use(pki.intermediate.issue(HOST))
    ask(one, there)
    assert len(wait_chains(one, HOST, 3)) == 3
    one.stop()
    two.stop()
    assert set(record(one)) == {HOST, "second.test"}
    assert len(chains(one, HOST)) == 3


def test_a_gateway_does_not_write_over_what_another_one_recorded(gateway, origin, pki):
    both = [HOST, "second.test"]
    there, turning = serve(origin, pki.intermediate.issue(*both))
    config = configuration(pki)
    config["hosts"][0]["match"] = both
    one = gateway(config)
    other = {**config, "cache": {"path": str(one.folder / "cache"), "disk": 0}}
    two = gateway(other)
    ask(one, there)
    wait_chains(one, HOST, 1)
    # Its last write before the one that counts is of another host.
    ask(two, there, "second.test")
    wait_chains(one, "second.test", 1)
    turning.use(pki.intermediate.issue(*both))
    ask(two, there)
    assert len(wait_chains(one, HOST, 2)) == 2


def test_a_deleted_record_is_written_whole_again(gateway, origin, pki):
    there, turning = serve(origin, pki.intermediate.issue(HOST, "second.test"))
    config = configuration(pki)
    config["hosts"][0]["match"] = [HOST, "second.test"]
    running = gateway(config)
    ask(running, there)
    wait_chains(running, HOST, 1)
    record_file(running).unlink()
    ask(running, there, "second.test")
    wait_chains(running, "second.test", 1)
    assert len(chains(running, HOST)) == 1
    # Damage that is found while it runs.
    record_file(running).write_text("rubbish" * 2000)
    turning.use(pki.intermediate.issue(HOST, "second.test"))
    ask(running, there)
    wait_chains(running, HOST, 2)
    assert len(chains(running, "second.test")) == 1


def test_a_damaged_record_is_set_aside(gateway, origin, pki):
    there, _ = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki), start=False)
    record_file(running).parent.mkdir()
    record_file(running).write_text("rubbish" * 1000)
    running.start()
    running.wait_log("the record of servers' keys was damaged; it was set aside")
    aside = record_file(running).with_name("observed-pins.sqlite.damaged")
    assert aside.read_text().startswith("rubbish")
    ask(running, there)
    wait_chains(running, HOST, 1)


def test_a_record_that_cannot_be_written_is_kept_in_memory(gateway, origin, pki):
    there, _ = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki), start=False)
    record_file(running).mkdir(parents=True)
    running.start()
    running.wait_log("the record of servers' keys is kept in memory: its file cannot be used")
    ask(running, there)
    until(lambda: running.metric("pinfold_pin_observed_hosts") == 1, "it is known")


def test_certificates_of_a_host_are_bounded(gateway, origin, pki):
    there, turning = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki))
    for _ in range(40):
        turning.use(pki.intermediate.issue(HOST))
        ask(running, there)
    running.stop()
    found = record(running)[HOST]
    assert len(found["chains"]) == 32
    assert found["forgottenChains"] == 8
    assert found["newKeys"] == 39


def test_each_path_to_a_root_is_recorded(gateway, origin, pki, tmp_path):
    other = root(tmp_path, "Other Root")
    crossed = pki.intermediate.cross_signed(other)
    leaf = pki.intermediate.issue(HOST, append=[crossed])
    there, _ = serve(origin, leaf)
    config = configuration(pki)
    config["tls"]["roots"].append(str(other.pem_file))
    running = gateway(config)
    ask(running, there)
    (chain,) = wait_chains(running, HOST, 1)
    ends = {path[-1]["key"] for path in chain["paths"]}
    assert ends == {pki.root.pin, other.pin}


def test_what_only_a_report_only_pinset_let_pass_is_never_proposed(gateway, origin, pki):
    there, _ = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(
        pki, {"pinsets": ["trial"]},
        pinsets={"trial": {"mode": "publicKey", "pins": [BACKUP], "enforce": False}}))
    ask(running, there)
    running.stop()
    (chain,) = chains(running, HOST)
    assert (chain["verified"], chain["reported"]) == (0, 1)
    age(running, 20, last=0)
    done = pin(running, "propose", "--host", HOST)
    assert done.returncode == 1
    assert "only a report-only pinset has let it pass" in done.stderr


def renewed(gateway, origin, pki, key=None):
    """A gateway that has seen a server over a renewal, long enough ago."""
    first = pki.intermediate.issue(HOST, key=key)
    there, turning = serve(origin, first)
    running = gateway(configuration(pki))
    ask(running, there)
    wait_chains(running, HOST, 1)
    running.stop()
    age(running, 40, last=20)
    second = pki.intermediate.issue(HOST, key=key)
    turning.use(second)
    running.start()
    ask(running, there)
    running.stop()
    return running, there, turning, second


def test_pins_are_not_proposed_too_early(gateway, origin, pki):
    there, _ = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki))
    ask(running, there)
    running.stop()
    done = pin(running, "propose", "--host", HOST)
    assert done.returncode == 1 and done.stdout == ""
    assert "it was seen for 0 hours; expected at least 7 days (--minimum)" in done.stderr
    done = pin(running, "propose", "--host", HOST, "--minimum", "0s", "--format", "json")
    found = json.loads(done.stdout)
    assert [one["role"] for one in found["pins"]] == ["issuer", "issuer"]
    assert not any(one["sure"] for one in found["pins"])


def written(text: str) -> dict:
    """The keys that a comment says to write into an entry."""
    lines = text.split("add:\n")[1].splitlines()
    return yaml.safe_load("\n".join(
        line[len("  #   "):] for line in takewhile(lambda one: one.startswith("  #   "), lines)))


def test_a_proposal_takes_nothing_from_the_entry_that_applies(gateway, origin, pki):
    running, *_ = renewed(gateway, origin, pki)
    running.config["hosts"][0] |= {"match": ["**.observed.test"], "cache": {"store": False}}
    running.write_config(running.config)
    done = pin(running, "propose")
    assert done.returncode == 0, done.stderr
    proposed = yaml.safe_load(done.stdout)
    assert "hosts" not in proposed and list(proposed["pinsets"]) == [HOST]
    assert "keeps what it says (cache)" in done.stdout
    found = json.loads(pin(running, "propose", "--format", "json").stdout)
    assert (found["place"], found["copy"]) == ("copy", ["cache"])
    # Without that, the entry is repeated, before the other.
    del running.config["hosts"][0]["cache"]
    running.write_config(running.config)
    proposed = yaml.safe_load(pin(running, "propose").stdout)
    (entry,) = proposed["hosts"]
    assert entry == {
        "match": [HOST], "upgrade": "https", "intercept": "auto", "tunnel": "inspect",
        "tls13Tunnel": "probe", "pins": "observe", "pinsets": [HOST]}
    running.config["hosts"].insert(0, entry)
    running.config["pinsets"] = proposed["pinsets"]
    running.write_config(running.config)
    checked = run_pinfold("check", "--config", str(running.config_file))
    assert checked.returncode == 0 and "Error" not in checked.stderr


def test_keys_for_a_pinned_host_are_added_to_its_pinset(gateway, origin, pki):
    running, *_ = renewed(gateway, origin, pki)
    running.config["hosts"][0]["pinsets"] = ["old"]
    running.config["pinsets"] = {"old": {"mode": "publicKey", "pins": [
        BACKUP, pki.root.pin]}}
    running.write_config(running.config)
    done = pin(running, "propose", "--host", HOST)
    assert done.returncode == 0 and yaml.safe_load(done.stdout) is None
    assert "To the pins of old, a pinset of the entry api.observed.test, add:" in done.stdout
    assert f'- "{pki.intermediate.pin}"' in done.stdout and pki.root.pin not in done.stdout


def test_proposed_pins_pass_the_check_and_the_next_renewal(gateway, origin, pki):
    running, there, turning, _ = renewed(gateway, origin, pki)
    done = pin(running, "propose")
    assert done.returncode == 0, done.stderr
    proposed = yaml.safe_load(done.stdout)
    (pinset,) = proposed["pinsets"].values()
    assert pinset["pins"] == [pki.intermediate.pin, pki.root.pin]
    assert pinset["enforce"] is False
    assert "# To the entry api.observed.test, which applies to api.observed.test" in done.stdout
    # Merged as it says, and enforced: the next renewal passes, an unknown key does not.
    running.config["pinsets"] = {HOST: {**pinset, "enforce": True}}
    running.config["hosts"][0] |= written(done.stdout)
    running.write_config(running.config)
    checked = run_pinfold("check", "--config", str(running.config_file))
    assert checked.returncode == 0 and "Error" not in checked.stderr
    turning.use(pki.intermediate.issue(HOST))
    running.start()
    ask(running, there)
    # One that has pins is not proposed again unless it is asked for.
    again = pin(running, "propose")
    assert again.returncode == 1 and "no server without pins is recorded" in again.stderr


def test_a_proposal_is_a_file_to_include(gateway, origin, pki):
    key = pki.intermediate.issue(HOST).key
    running, there, _, leaf = renewed(gateway, origin, pki, key)
    # Observed by `all`: no entry applies yet, and the output is one by itself.
    running.config["hosts"] = []
    running.config["pins"] = {"observe": "all"}
    running.write_config(running.config)
    out = running.folder / "proposed.yaml"
    done = pin(running, "propose", "--out", str(out))
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    assert "leaf, sure: CN=api.observed.test: the server's own key, the same in 2" in text
    running.config["include"] = ["proposed.yaml"]
    running.write_config(running.config)
    checked = run_pinfold("check", "--config", str(running.config_file))
    assert checked.returncode == 0, checked.stderr
    assert leaf.pin in checked.stdout
    running.start()
    ask(running, there)
    assert running.metric("pinfold_pin_matches_total", pinset=HOST,
                          pin=leaf.pin[:len("sha256/") + 12]) == 1
    # An existing file is not overwritten.
    assert pin(running, "propose", "--host", HOST, "--out", str(out)).returncode == 1


def test_a_named_key_is_the_second(gateway, origin, pki):
    running, *_ = renewed(gateway, origin, pki)
    done = pin(running, "propose", "--host", HOST, "--backup", BACKUP)
    (pinset,) = yaml.safe_load(done.stdout)["pinsets"].values()
    assert pinset["pins"] == [pki.intermediate.pin, BACKUP]
    wrong = pin(running, "propose", "--host", HOST, "--backup", "rubbish")
    assert wrong.returncode == 64


def test_the_record_is_shown(gateway, origin, pki):
    running, there, *_ = renewed(gateway, origin, pki)
    done = pin(running, "observed")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split()[:3] == [f"{HOST}:{there.port}", "2", "2"]
    shown = pin(running, "observed", "--host", HOST)
    assert pki.intermediate.pin in shown.stdout and "addresses: 127.0.0.1 (1)" in shown.stdout
    exported = json.loads(pin(running, "observed", "--json").stdout)
    assert exported == record(running)[HOST]
    missing = pin(running, "observed", "--host", "nobody.test")
    assert "it has not been seen" in missing.stderr


def test_the_status_says_what_is_near_an_outage(gateway, origin, pki):
    running, there, _, leaf = renewed(gateway, origin, pki)
    running.config["hosts"][0]["pinsets"] = ["fragile", "wrong"]
    running.config["pinsets"] = {
        "fragile": {"mode": "publicKey", "pins": [leaf.pin]},
        "wrong": {"mode": "publicKey", "pins": [BACKUP, "sha256/" + "B" * 42 + "A="]}}
    running.write_config(running.config)
    done = pin(running, "status")
    assert done.returncode == 1
    assert "fragile: warning\n  warning: it has one key only" in done.stdout
    # 60 days within the second in which it was issued.
    assert re.search(r"which was new at each renewal, and its certificate expires in (59|60) days",
                     done.stdout)
    assert "wrong: critical\n  critical: " in done.stdout
    assert "shows a certificate without a pinned key" in done.stdout
    rows = [json.loads(line) for line in pin(running, "status", "--json").stdout.splitlines()]
    assert {one["concern"] for one in rows[0]["concerns"]} == {"one-key", "leaf-changes"}
    # What it showed long ago is nothing to judge by.
    age(running, 31)
    done = pin(running, "status")
    assert done.returncode == 0
    assert f"note: {HOST}:{there.port} was seen last on " in done.stdout
    assert "critical" not in done.stdout
