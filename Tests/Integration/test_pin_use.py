"""Pins that nothing matches: kept over restarts, and warned of by `pinfold check`."""

from __future__ import annotations

import hashlib
import os
import time

import pytest
from support.gateway import run_pinfold
from support.origin import reply
from support.secure import reload
from support.wait import until

HOST = "api.use.test"
BACKUP = "sha256/" + "A" * 43 + "="
DAY = 86_400


def configuration(pki, *pins: str) -> dict:
    return {
        "hosts": [{"match": [HOST], "upgrade": "https", "pinsets": ["payments"]}],
        "tls": {"roots": [str(pki.root.pem_file)]}, "workers": 1,
        "pinsets": {"payments": {"mode": "publicKey", "pins": list(pins)}}}


def use_file(running):
    return running.folder / "cache" / "pin-use"


def uses(running) -> dict[str, tuple[str, str]]:
    """The file's record of each pin: since when it is watched, and when it matched last."""
    if not use_file(running).exists():
        return {}
    lines = use_file(running).read_text().splitlines()[2:]
    return {parts[3]: (parts[1], parts[2]) for line in lines
            if (parts := line.split(" ", 3))[0] == "pin"}


def age(running, seconds: int) -> None:
    """Makes the file that much older."""
    lines = use_file(running).read_text().splitlines()[2:]
    made = []
    for line in lines:
        parts = line.split(" ")
        last = 2 if parts[0] == "pinset" else 3
        made.append(" ".join(
            str(int(part) - seconds) if part.isdigit() and 0 < index < last else part
            for index, part in enumerate(parts)) + "\n")
    write_uses(running, made)


def write_uses(running, lines: list[str]) -> None:
    text = "".join(lines)
    digest = hashlib.sha256(text.encode()).hexdigest().upper()
    digest = ":".join(digest[i:i + 2] for i in range(0, 64, 2))
    use_file(running).write_text(f"pinfold pin use 1\n{digest}\n{text}")


def check(running) -> str:
    done = run_pinfold("check", "--config", str(running.config_file))
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_pin_that_nothing_has_matched_is_warned_of(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: no-store"),
                   tls=leaf.server_context())
    running = gateway(configuration(pki, leaf.pin, BACKUP))
    until(lambda: set(uses(running)) == {leaf.pin, BACKUP}, "both are watched")
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    running.stop()
    now = time.time()
    assert abs(int(uses(running)[leaf.pin][1]) - now) < 60
    assert uses(running)[BACKUP][1] == "-"
    assert "has matched nothing" not in check(running)

    # Fifty days later, in which nothing was asked: nothing is known of any pin but that.
    age(running, 50 * DAY)
    running.start()
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    running.stop()
    lines = [line for line in check(running).splitlines() if "has matched nothing" in line]
    since = time.strftime("%Y-%m-%d", time.gmtime(int(uses(running)[BACKUP][0])))
    assert len(lines) == 1
    assert (f"pin 2 of pinset payments has matched nothing since {since} (50 days), {BACKUP}"
            in lines[0])

    # A key that is no longer used: the pinset verifies servers, and none has it.
    next_leaf = pki.intermediate.issue(HOST)
    another = origin(lambda _: reply(b"genuine"), tls=next_leaf.server_context())
    running.config["pinsets"]["payments"]["pins"] = [leaf.pin, next_leaf.pin, BACKUP]
    running.start()
    assert running.get(f"http://{HOST}:{another.port}/").status == 200
    running.kill()
    # What was seen last is lost with the process, and what was written before is not.
    assert abs(int(uses(running)[leaf.pin][1]) - now) < 60
    running.start()
    assert running.get(f"http://{HOST}:{another.port}/").status == 200
    running.stop()
    assert int(uses(running)[next_leaf.pin][1]) >= now - 1
    age(running, 8 * DAY)
    running.start()
    assert running.get(f"http://{HOST}:{another.port}/").status == 200
    running.stop()
    lines = [line for line in check(running).splitlines() if "has matched nothing" in line]
    assert len(lines) == 2
    assert "pin 1 of" in lines[0] and "(8 days)" in lines[0] and "no longer be in use" in lines[0]
    assert "pin 3 of" in lines[1] and "(58 days)" in lines[1] and "backup" in lines[1]


def test_a_reload_counts_for_the_pins_of_its_time(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: no-store"),
                   tls=leaf.server_context())
    config = configuration(pki, leaf.pin, BACKUP)
    running = gateway(config)
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    config["pinsets"]["payments"]["pins"] = [BACKUP, leaf.pin]
    reload(running, {**running.config, **config})
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    running.stop()
    assert uses(running)[BACKUP][1] == "-"
    assert uses(running)[leaf.pin][1] != "-"


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_path_that_is_no_file_is_logged(gateway, pki, kind):
    running = gateway(configuration(pki, BACKUP), start=False)
    use_file(running).parent.mkdir()
    other = running.folder / "other"
    other.write_text("somebody's")
    make = {"pipe": os.mkfifo, "folder": os.mkdir,
            "link": lambda path: path.symlink_to(other)}[kind]
    make(use_file(running))
    running.start()
    running.wait_log("the record of matched pins cannot be saved.*pin-use: is not a regular file")
    assert running.stop() == 0
    assert "cannot be read: " in check(running) and "is not a regular file" in check(running)
    assert other.read_text() == "somebody's"


@pytest.mark.parametrize("since", [-2**63, -1, 2**63 - 1])
def test_a_file_with_invalid_times_counts_as_absent(gateway, pki, since):
    running = gateway(configuration(pki, BACKUP), start=False)
    running.write_config(running.config)
    use_file(running).parent.mkdir()
    write_uses(running, ["pinset 1700000000 payments\n", f"pin {since} - {BACKUP}\n"])
    assert "has matched nothing" not in check(running)


def test_a_damaged_file_counts_as_absent(gateway, pki):
    running = gateway(configuration(pki, BACKUP), start=False)
    use_file(running).parent.mkdir()
    use_file(running).write_text("rubbish")
    running.start()
    until(lambda: set(uses(running)) == {BACKUP}, "it is created again")
    running.stop()
    use_file(running).write_text(use_file(running).read_text() + "pin 0 - x\n")
    assert "has matched nothing" not in check(running)
