"""Reports of pin failures where the server that takes them, the disk or a reload gets in the way."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
from pathlib import Path

import pytest
from support.gateway import free_port
from support.origin import Request, reply, serving
from support.preload import library
from support.reports import (
    HOST,
    WRONG,
    Collector,
    ask,
    configuration,
    counted,
    files,
    serve,
    waiting,
)
from support.secure import reload
from support.wait import until

HELLO_REQUESTS = b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 4000
INTERIM = b"HTTP/1.1 103 Early Hints\r\n\r\n"

# A disk that is slow: while a file is there, what the reporter's thread syncs takes for ever.
SLOW_DISK = """
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static void wait_here(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    while (strcmp(name, "pin-reports") == 0 && access(FILE_PATH, F_OK) == 0) usleep(1000);
}
int fsync(int fd) { (void)fd; wait_here(); return 0; }
int syncfs(int fd) { (void)fd; wait_here(); return 0; }
"""

# Writes down what the reporter's thread has on the disk, and what it gives a name.
DISK_LOG = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static void note(const char *what, const char *path, const char *other) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strcmp(name, "pin-reports") != 0) return;
    FILE *log = fopen(FILE_PATH, "a");
    fprintf(log, "%s %s %s\\n", what, path, other);
    fclose(log);
}
static void note_file(const char *what, int fd) {
    char link[32], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0) note(what, path, "-");
}
int fsync(int fd) { note_file("fsync", fd); return 0; }
int syncfs(int fd) { note_file("syncfs", fd); return 0; }
int rename(const char *old, const char *new) {
    note("rename", old, new);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(old, new);
}
"""


def endless(data: bytes):
    """A server that sends the same for ever, after it has been sent anything."""
    def script(connection) -> None:
        connection.socket.recv(1 << 16)
        with contextlib.suppress(OSError):
            while True:
                connection.socket.sendall(data)
    return script


def dead(pki, **pinset) -> dict:
    """Reports go where nobody is."""
    return configuration(pki, f"http://127.0.0.1:{free_port()}/", **pinset)


@pytest.mark.slow
def test_a_handshake_without_end_holds_nothing_up(gateway, origin, pki, scripted_origin):
    taker = scripted_origin(endless(HELLO_REQUESTS))
    running = gateway(configuration(pki, f"https://localhost:{taker.port}/", enforce=False))
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 200
    until(lambda: taker.accepted == 1, "it is being delivered")
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 200
    until(lambda: len(files(running)) == 2, "what happens meanwhile is on disk")
    running.wait_log("are not accepted, and will be retried.*the handshake did not complete in time", 30)
    until(lambda: taker.accepted == 2, "it is tried again")
    assert running.stop() == 0
    assert len(files(running)) == 2
    # The thread has ended by itself: it has written down all that it knew.
    assert "pin" in (running.folder / "cache" / "pin-use").read_text()


def test_interim_responses_without_end_hold_nothing_up(gateway, origin, pki, scripted_origin):
    taker = scripted_origin(endless(INTERIM * 100))
    running = gateway(configuration(pki, taker.url("/")))
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    running.wait_log("are not accepted, and will be retried.*its answer does not end")
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: len(files(running)) == 2, "both wait")


def test_a_few_interim_responses_are_passed_over(gateway, origin, pki, collector):
    taker = collector(answers=[INTERIM * 16 + reply(b"", "204 No Content")])
    running = gateway(configuration(pki, taker.url("/")))
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: counted(running, "delivered") == 1, "it is delivered")


def test_old_reports_are_dropped_when_no_pinset_reports_any_more(gateway, origin, pki):
    config = dead(pki)
    running = gateway(config)
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: len(files(running)) == 1, "it is on disk")
    running.stop()
    del running.config["pinsets"]["wanted"]["reportTo"]
    running.start()
    running.wait_log("their pinsets no longer report.*reports=1")
    assert counted(running, "withdrawn") == 1
    assert files(running) == [] and waiting(running) == 0


def test_without_reports_there_is_no_folder(gateway, pki):
    config = dead(pki)
    del config["pinsets"]["wanted"]["reportTo"]
    running = gateway(config)
    until(lambda: (running.folder / "cache" / "pin-use").exists(), "the thread has worked")
    assert running.stop() == 0
    assert not (running.folder / "cache" / "pin-reports").exists()


def test_a_failure_is_reported_again_when_the_pins_have_changed(gateway, origin, pki, collector):
    there, taker, another = serve(origin, pki.intermediate.issue(HOST)), collector(), collector()
    config = configuration(pki, taker.url("/"))
    running = gateway(config)
    for _ in range(3):
        assert ask(running, there).status == 502
    [first] = taker.wait()
    config["pinsets"]["wanted"]["pins"] = WRONG[1:]
    reload(running, {**running.config, **config})
    # What was only counted is reported with the pins of its time.
    assert taker.wait(2)[1]["known-pins"] == first["known-pins"]
    assert taker.reports[1]["count"] == 2
    assert ask(running, there).status == 502
    third = taker.wait(3)[2]
    assert third["count"] == 1 and third["known-pins"] == first["known-pins"][1:]
    config["pinsets"]["wanted"]["reportTo"] = another.url("/")
    reload(running, {**running.config, **config})
    assert ask(running, there).status == 502
    assert another.wait()[0]["count"] == 1
    # Nothing of it has changed: it is counted.
    config["limits"] = {"pending": 7}
    reload(running, {**running.config, **config})
    before = counted(running, "repeated")
    assert ask(running, there).status == 502
    assert counted(running, "repeated") == before + 1


def test_reports_that_cannot_be_saved_are_logged_at_the_end(gateway, origin, pki):
    running = gateway(dead(pki), start=False)
    (running.folder / "cache").mkdir()
    (running.folder / "cache" / "pin-reports").write_text("not a folder")
    running.start()
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: waiting(running) == 1, "it waits in memory")
    assert running.stop() == 0
    assert "could not be saved before the process ended reports=1" in running.log()


@pytest.fixture
def slow_disk(tmp_path, monkeypatch):
    """The file that makes the disk slow for gateways that are started."""
    slow = tmp_path / "slow"
    monkeypatch.setenv("LD_PRELOAD", str(library(SLOW_DISK, slow)))
    yield slow
    slow.unlink(missing_ok=True)


@pytest.fixture
def disk_log(tmp_path, monkeypatch):
    """The file in which gateways that are started write what they have on the disk when."""
    log = tmp_path / "disk"
    log.touch()
    monkeypatch.setenv("LD_PRELOAD", str(library(DISK_LOG, log)))
    return log


def end(running) -> None:
    """Waits as long as the gateway gives its disk."""
    running.signal(signal.SIGTERM)
    assert running.wait_exit() == 0


def test_a_slow_disk_loses_nothing_at_the_end(gateway, origin, pki, slow_disk):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(dead(pki, pins=[leaf.pin, WRONG[0]]), start=False)
    running.start()
    use = running.folder / "cache" / "pin-use"
    until(use.exists, "its pins are watched")
    other = serve(origin, pki.intermediate.issue(HOST))
    for _ in range(3):
        assert ask(running, other).status == 502
    until(lambda: len(files(running)) == 1, "one is on disk")
    assert ask(running, there).status == 200
    slow_disk.touch()
    end(running)
    # What was whole has not got its name: that comes after the disk.
    assert len(files(running)) == 1
    assert len(list((running.folder / "cache" / "pin-reports").glob("*.unfinished"))) == 1
    slow_disk.unlink()
    running.start()
    running.wait_log("found waiting pin failure reports.*reports=2")
    until(lambda: len(files(running)) == 2, "both have their names")
    until(lambda: [line for line in use.read_text().splitlines()
                   if leaf.pin in line and line.split()[2] != "-"], "its match is known")
    until(lambda: not list(use.parent.glob("*.unfinished")), "nothing is left of it")


def test_a_file_gets_its_name_when_it_is_on_the_disk(gateway, origin, pki, disk_log):
    """And the name is on the disk before anything else happens; at the end, too."""
    leaf = pki.intermediate.issue(HOST)
    running = gateway(dead(pki, pins=[leaf.pin, WRONG[0]]), start=False)
    running.start()
    use, there = running.folder / "cache" / "pin-use", serve(origin, pki.intermediate.issue(HOST))
    until(use.exists, "its pins are watched")
    for _ in range(3):
        assert ask(running, there).status == 502
    until(lambda: len(files(running)) == 1, "one is on disk")
    assert ask(running, serve(origin, leaf)).status == 200
    before_end = len(disk_log.read_text().splitlines())
    assert running.stop() == 0
    assert len(files(running)) == 2
    steps = [line.split() for line in disk_log.read_text().splitlines()]
    renamed = [(index, Path(step[1]), Path(step[2])) for index, step in enumerate(steps)
               if step[0] == "rename"]
    assert sorted(new.suffix for _, _, new in renamed) == ["", "", ".report", ".report"]
    for index, old, new in renamed:
        on_disk = ["fsync", str(old), "-"] in steps[:index]
        all_on_disk = ["syncfs", str(old.parent), "-"] in steps[before_end:index]
        assert on_disk or all_on_disk, f"{new.name} in {steps}"
        assert ["fsync", str(new.parent), "-"] in steps[index:], f"{new.name} in {steps}"


def test_reports_that_a_slow_disk_loses_are_logged(gateway, origin, pki, slow_disk):
    running = gateway(dead(pki), start=False)
    running.start()
    folder = running.folder / "cache" / "pin-reports"
    until((running.folder / "cache" / "pin-use").exists, "its pins are watched")
    slow_disk.touch()
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: list(folder.glob("*.unfinished")), "it is being written")
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    end(running)
    assert "could not be saved before the process ended reports=2" in running.log()


def test_reports_in_memory_that_a_slow_disk_loses_are_logged(gateway, origin, pki, slow_disk):
    running = gateway(dead(pki), start=False)
    running.start()
    folder = running.folder / "cache" / "pin-reports"
    until(folder.exists, "the folder is made")
    folder.rmdir()
    folder.write_text("not a folder")
    for _ in range(2):
        assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: waiting(running) == 2, "both wait in memory")
    folder.unlink()
    slow_disk.touch()
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(folder.is_dir, "they are being written")
    end(running)
    assert "could not be saved before the process ended reports=3" in running.log()


def test_a_server_that_is_slow_delays_no_other(gateway, origin, pki, collector):
    answers = threading.Event()
    taker = origin(lambda _: reply(b"", "200 OK" if answers.wait(60) else "500 Late"))
    other = collector()
    config = configuration(pki, taker.url("/"), enforce=False)
    config["pinsets"]["other"] = {**config["pinsets"]["wanted"], "reportTo": other.url("/")}
    running, there = gateway(config), serve(origin, pki.intermediate.issue(HOST))
    assert ask(running, there).status == 200
    until(lambda: taker.accepted == 1, "it is being delivered")
    config["hosts"][0]["pinsets"] = ["wanted", "other"]
    reload(running, {**running.config, **config})
    assert ask(running, there).status == 200
    assert other.wait()[0]["pinset"] == "other"
    # The slow one was never given up meanwhile.
    assert counted(running, "retried") == 0
    answers.set()
    until(lambda: counted(running, "delivered") == 2, "both are delivered")
    assert taker.accepted == 1


def test_a_server_that_is_lost_over_one_report_gets_the_others(gateway, origin, pki):
    """It closes without an answer, each time that it is sent the first one."""
    first = serve(origin, pki.intermediate.issue(HOST))
    other = serve(origin, pki.intermediate.issue(HOST))
    fatal = []

    def answer(request: Request) -> bytes | None:
        port = json.loads(request.body)["port"]
        if port == first.port:
            fatal.append(port)
            return None
        return reply(b"", "204 No Content")

    taker = origin(answer)
    running = gateway(configuration(pki, taker.url("/")))
    assert ask(running, first).status == 502
    until(lambda: fatal, "the first has been sent")
    assert ask(running, other).status == 502
    until(lambda: counted(running, "delivered") == 1, "the other is delivered", 30)
    assert waiting(running) == 1


def test_a_pin_gets_what_it_matched_though_a_delivery_takes_long(
    gateway, origin, pki, scripted_origin
):
    silent = scripted_origin(lambda connection: connection.read_request_head() and
                             connection.socket.recv(1 << 20) and connection.socket.recv(1))
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, silent.url("/"), pins=[WRONG[0], leaf.pin])
    running = gateway(config)
    until(lambda: (running.folder / "cache" / "pin-use").exists(), "its pins are watched")
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: silent.accepted == 1, "it is being delivered")
    config["pinsets"]["wanted"]["pins"] = [leaf.pin, WRONG[0]]
    reload(running, {**running.config, **config})
    assert ask(running, serve(origin, leaf)).status == 200
    assert running.stop() == 0
    lines = (running.folder / "cache" / "pin-use").read_text().splitlines()
    seen = {line.split()[3]: line.split()[2] for line in lines if line.startswith("pin ")}
    assert seen[WRONG[0]] == "-" and seen[leaf.pin] != "-"


def test_reports_in_memory_go_to_disk_when_there_is_a_folder(gateway, origin, pki):
    """After a minute, or with the next report."""
    config = dead(pki)
    running = gateway(config)
    folder = running.folder / "cache" / "pin-reports"
    until(folder.exists, "the folder is made")
    folder.rmdir()
    folder.write_text("not a folder")
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    running.wait_log("pin failure reports are kept in memory")
    folder.unlink()
    assert ask(running, serve(origin, pki.intermediate.issue(HOST))).status == 502
    until(lambda: len(files(running)) == 2, "both are on disk")
    with serving(Collector(listener=socket.create_server(
            ("127.0.0.1", int(config["pinsets"]["wanted"]["reportTo"].split(":")[2][:-1]))))) as it:
        assert len(it.wait(2)) == 2


def test_a_server_that_passes_is_logged_again_when_the_pins_have_changed(gateway, origin, pki):
    """Not only once in the hour after the first time."""
    config = configuration(pki, "", enforce=False)
    del config["pinsets"]["wanted"]["reportTo"]
    running, there = gateway(config), serve(origin, pki.intermediate.issue(HOST))
    line = "server accepted by a report-only pinset"
    assert ask(running, there).status == 200
    until(lambda: running.log().count(line) == 1, "it is logged")
    for lines, pins in [(2, WRONG[:1]), (3, WRONG[1:])]:
        config["pinsets"]["wanted"]["pins"] = pins
        reload(running, {**running.config, **config})
        for _ in range(2):
            assert ask(running, there).status == 200
        until(lambda lines=lines: running.log().count(line) == lines, "each pin is logged once")
