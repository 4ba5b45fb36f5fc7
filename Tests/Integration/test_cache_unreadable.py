"""What is stored and cannot be read is never taken for something that is not stored."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.gateway import Gateway, run_pinfold
from support.origin import reply
from support.wait import until
from support.wire import request

SMALL = {"cache": {"memory": "1MiB"}}
COUNT = 120

# Each command that says what is stored, and its status if it cannot.
QUESTIONS = {
    "sql": (["sql", "SELECT count(*) FROM cache"], 2),
    "stats": (["stats", "--hosts"], 2),
    "dry-run": (["purge", "--everything", "--dry-run"], 1),
    "export": (["export", "archive"], 2),
}


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        seen.target.encode() * 2000, "200 OK", "Cache-Control: max-age=600"))


def cache(running: Gateway, *arguments: str):
    return run_pinfold("cache", *arguments, "--admin", "%s:%d" % running.admin,
                       cwd=running.folder, timeout=60)


def ask(running: Gateway, path: str, **members) -> tuple[int, dict]:
    if members:
        data = json.dumps(members).encode()
        response = running.ask(
            f"POST /api/v1/cache/{path} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data,
            "admin")
    else:
        response = running.admin_get(f"/api/v1/cache/{path}")
    return response.status, json.loads(response.body)


def kind(answer: dict) -> str:
    prefix = "urn:pinfold:problem:"
    assert answer["type"].startswith(prefix) and answer["status"] and answer["title"]
    return answer["type"].removeprefix(prefix)


def stored(running: Gateway, there, count: int = COUNT) -> None:
    with running.wire() as wire:
        for number in range(count):
            assert wire.ask(request(there.url(f"/{number}"))).status == 200


def overwrite(running: Gateway, start: float = 0) -> None:
    """Makes the database unreadable from a part of the file on, behind the back of who has it open;
    its first page, which has the schema, stays."""
    path = running.folder / "cache/cache.sqlite"
    page, size = 4096, path.stat().st_size
    first = max(page, int(size * start) // page * page)
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xff" * (size - first))


@pytest.fixture
def damaged(gateway, there) -> Gateway:
    """It has everything on disk, where it cannot be read, and nothing in memory."""
    running = gateway(SMALL)
    running.wait_for_disk()
    stored(running, there)
    running.restart()
    running.wait_for_disk()
    overwrite(running)
    return running


@pytest.fixture
def broken(gateway, there) -> Gateway:
    """A file is where the folder of its cache should be: the disk tier is off."""
    running = gateway(SMALL, start=False)
    (running.folder / "cache").write_text("a file")
    running.start()
    stored(running, there, 3)
    return running


# A database that cannot be read


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_database_that_cannot_be_read_is_no_empty_cache(damaged, question):
    arguments, status = QUESTIONS[question]
    done = cache(damaged, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert "the cache's database could not be read: " in done.stderr
    assert not list(damaged.folder.glob("*archive*"))
    # The gateway has noticed as well.
    damaged.wait_log("a damaged cache database was set aside")
    until(lambda: ask(damaged, "entries")[0] == 200, "a new database is there")


def test_what_cannot_be_read_is_a_problem_of_the_api(damaged):
    status, answer = ask(damaged, "entries")
    assert (status, kind(answer)) == (500, "cache-read-failed")
    assert answer["detail"].startswith("the cache's database could not be read: ")


def test_a_url_that_cannot_be_read_is_not_called_unknown(damaged, there):
    done = cache(damaged, "show", there.url("/1"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is in memory for" in done.stderr
    assert "the cache's database could not be read: " in done.stderr


def test_a_list_of_what_is_in_memory_says_that_it_is_no_more(damaged, there):
    damaged.get(there.url("/new"))
    done = cache(damaged, "ls", "--json")
    assert done.returncode == 1
    assert [json.loads(line)["url"] for line in done.stdout.splitlines()] == [there.url("/new")]
    assert "only what is in memory is listed: the cache's database could not be read: " in done.stderr


@pytest.mark.parametrize("question", ["sql", "export"])
def test_a_failure_in_the_middle_is_no_end(gateway, there, question):
    running = gateway(SMALL)
    running.wait_for_disk()
    stored(running, there, 1500)
    running.restart()
    running.wait_for_disk()
    overwrite(running, 0.9)
    status, answer = ask(running, "entries?limit=1")
    assert status == 200 and len(answer["entries"]) == 1
    arguments, status = QUESTIONS[question]
    done = cache(running, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert "could not be read" in done.stderr
    assert not list(running.folder.glob("*archive*"))


# A disk tier that is off


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_disk_that_is_off_because_of_a_fault_is_no_empty_disk(broken, question):
    arguments, status = QUESTIONS[question]
    done = cache(broken, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert "the cache's disk tier is off: its folder cannot be created" in done.stderr
    assert not list(broken.folder.glob("*archive*"))


def test_a_disk_that_is_off_is_a_problem_of_the_api(broken, there):
    for path in ("entries", "export?session=a&piece=0"):
        status, answer = ask(broken, path)
        assert (status, kind(answer)) == (503, "cache-disk-off")
    status, answer = ask(broken, "purge", everything=True, dryRun=True)
    assert (status, kind(answer)) == (503, "cache-disk-off")
    status, answer = ask(broken, "entries?tier=memory")
    assert status == 200 and len(answer["entries"]) == 3
    status, answer = ask(broken, "entries?tier=disk")
    assert (status, kind(answer)) == (400, "invalid-query")
    status, figures = ask(broken, "stats")
    assert figures["diskState"] == "failed" and "folder" in figures["diskFault"]


def test_commands_list_what_is_in_memory_and_say_what_is_missing(broken, there):
    done = cache(broken, "ls")
    assert done.returncode == 1 and "3 responses" in done.stdout
    assert "only what is in memory is listed: the cache's disk tier is off: its folder" in done.stderr
    for arguments, expected in [
            (["ls", "--memory"], "3 responses"),
            (["sql", "--memory", "SELECT count(*) FROM cache"], "3"),
            (["stats", "--hosts", "--memory"], "127.0.0.1")]:
        done = cache(broken, *arguments)
        assert done.returncode == 0 and expected in done.stdout, done
    done = cache(broken, "stats")
    assert "disk    not in use: its folder cannot be created" in done.stdout


def test_a_url_is_shown_from_memory_with_a_warning(broken, there):
    done = cache(broken, "show", there.url("/1"))
    assert done.returncode == 0 and "a GET now is answered with it" in done.stdout
    assert "only what is in memory is shown: the cache's disk tier is off" in done.stderr
    done = cache(broken, "show", there.url("/other"))
    assert (done.returncode, done.stdout) == (2, "")
    status, answer = ask(broken, f"entry?url={there.url('/1')}")
    assert (status, kind(answer)) == (503, "cache-disk-off")


def test_a_client_that_may_purge_is_told_that_nothing_can_be_counted(gateway, there):
    running = gateway(
        {"cache": {"memory": "1MiB", "purge": {"clients": ["127.0.0.0/8"]}}}, start=False)
    (running.folder / "cache").write_text("a file")
    running.start()
    response = running.ask(request(there.url("/a"), method="PURGE", Purge_Dry_Run="1"))
    assert response.status == 500 and b"the cache's disk tier is off" in response.body
    assert "purge-not-counted" in response.get("proxy-status")


def test_a_disk_that_is_not_configured_is_not_missing(gateway, there):
    running = gateway({"cache": {"disk": "0"}})
    stored(running, there, 3)
    for arguments in (["ls"], ["show", there.url("/1")], ["stats"],
                      *(arguments for arguments, _ in QUESTIONS.values())):
        done = cache(running, *arguments)
        assert done.returncode == 0, done
        assert "disk tier" not in done.stderr
    assert Path(running.folder / "archive").exists()


def test_what_is_damaged_on_disk_is_told_apart_in_an_export(gateway, origin):
    large = bytes(range(256)) * 12_000
    there = origin(lambda seen: reply(large, "200 OK", "Cache-Control: max-age=600"))
    running = gateway(SMALL)
    running.wait_for_disk()
    for name in "ab":
        running.get(there.url(f"/{name}"))
    until(lambda: running.metric("pinfold_cache_disk_writes_total") == 2, "both are on disk")
    running.stop()
    with closing(sqlite3.connect(running.folder / "cache/cache.sqlite")) as database, database:
        # A chunk of one of them.
        changed = database.execute(
            "UPDATE chunk SET data = zeroblob(length(data)) WHERE id = (SELECT max(id) FROM chunk)")
        assert changed.rowcount == 1
    running.start()
    running.wait_for_disk()
    done = cache(running, "export", "archive")
    assert done.returncode == 0 and "2 responses exported" in done.stderr, done
    assert "1 of them damaged: an import leaves them out" in done.stderr
    done = cache(running, "import", "archive")
    assert done.returncode == 1 and "1 stored" in done.stdout and "1 damaged" in done.stdout


def test_a_list_ends_with_the_process_that_has_begun_it(gateway, there):
    running = gateway(SMALL)
    running.wait_for_disk()
    stored(running, there, 20)
    _, page = ask(running, "entries?limit=5")
    assert ask(running, f"entries?limit=5&cursor={page['next']}")[0] == 200
    running.restart()
    running.wait_for_disk()
    status, answer = ask(running, f"entries?limit=5&cursor={page['next']}")
    assert (status, kind(answer)) == (409, "cache-list-outdated")
