"""The client library in a package of its own: what README and the pages show builds and runs as
printed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support import outside
from support.servers import HTTPBin, Nginx

# Without a debug build of the tests, the library and its dependencies are compiled first.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def programs() -> Path:
    return outside.build()


def run(programs: Path, part: str, folder: Path, service: HTTPBin, *others: str) -> str:
    """What a part of the pages prints, in a folder of its own."""
    ran = subprocess.run(
        [programs / "pages", part, service.url("/").removesuffix("/"), *others], cwd=folder,
        env={**os.environ, "no_proxy": "*"}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_program_has_about_twenty_lines() -> None:
    assert 15 <= len(outside.program().splitlines()) <= 25


@pytest.mark.slow
def test_the_program_of_the_readme_builds_and_runs_as_printed(
    programs: Path, httpbin: HTTPBin
) -> None:
    url = httpbin.url("/").removesuffix("/")
    ran = subprocess.run([programs / "outside", url], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    asked, sent, refused = ran.stdout.splitlines()
    assert asked == f'asked {url}/get?name=Ada, which saw ["name": "Ada"]'
    assert '"en"' in sent and '"fr"' in sent
    assert refused.startswith("refused:") and "404" in refused


# What the code below each heading of the page on migration prints, among other things.
MIGRATION = {
    "A session": r"http://127.0.0.1:\d+/ 0\n",
    "GET with parameters": r"Ada",
    "Parameters in other styles": r".*page_size.*tea.*milk.*\n.*pageSize.*tea.*milk.*\n",
    "JSON as your own type": r'\["name": "Ada"\]\n',
    "Reading a response": r"curl 'http://.*\n\d+ Ada\n\[\"name\": \"Ada\"\] 0\n(?:\d+\n){3}\"tea\" \{.*\}\n",
    "POST: a form, and JSON": r"(?:.*Ada.*\n){3}",
    "Fields and authorization": r"dXNlcjpzZWNyZXQ=",
    "A form with files": r"some text",
    "An upload with progress": r"200 OK 9\n",
    "Uploads: compressed, on request, from a sequence": r'200 OK \d+\n"onetwo"\n200 OK\n',
    "A download to a file, and resuming it": r"range\.txt 100000\n(?:.*\n)*100000\n",
    "Pins": r"clearTextRefused \[\]\n",
    "Pins for some hosts, and where to connect": r"200 OK\nclearTextRefused\n",
    "HTTP/2": r'\["http/1\.1"\]\nhttp2Only\n',
    "Many requests, on one thread": r"\[200, 200, 200\]\n",
    "Suspending, resuming, cancelling": r"failure",
    "Redirects": r"302(?:.*\n)*/get\n",
    "Credentials": r"200",
    "Retries": r"503.* 2\n",
    "Interceptors": r"200 OK\n2\n",
    "Tests without a network": r'"Ada"\nconnectionLost\n200 OK\n',
    "Events of tasks": r"/get 0\.\d+ seconds\n",
    "Reachability and activity": r"(?:not)?[rR]eachable",
    "Images": r"png 100 100\n",
    "Streams": r"\d+\n",
}


@pytest.mark.parametrize("heading", MIGRATION)
def test_the_code_of_the_page_on_migration_runs(
    programs: Path, httpbin: HTTPBin, tmp_path: Path, heading: str
) -> None:
    (tmp_path / "picture.txt").write_text("some text")
    ran = run(programs, f"migration: {heading}", tmp_path, httpbin)
    assert re.search(MIGRATION[heading], ran), ran


def test_the_page_on_migration_has_these_headings() -> None:
    assert list(outside.migration()) == list(MIGRATION)


# What the steps of the tutorial print, as it says.
TUTORIAL = [
    r"200 with content\n",
    r"hello, Ada\n",
    r"sent 2 tea\nserialization http://.*/status/404.*404.*\n",
    r"503 3\n",
    r"(?:received \d+\n)+100000 bytes\n",
    r"67108864 bytes(?:, \d+ of them from before)?\n",
    r"clearTextRefused \[\]\n",
    r"(?:completed /get\n){2}ended\n",
]


@pytest.mark.parametrize("step", outside.tutorial(), ids=lambda step: step.stem)
def test_a_step_of_the_tutorial_compiles_and_runs(
    programs: Path, httpbin: HTTPBin, nginx: Nginx, tmp_path: Path, step: Path
) -> None:
    with (nginx.files / "tutorial.bin").open("wb") as large:
        large.truncate(64 << 20)
    assert outside.check(step, programs) == ""
    expected = TUTORIAL[outside.tutorial().index(step)]
    ran = run(programs, step.stem, tmp_path, httpbin, nginx.url("/").removesuffix("/"))
    assert re.fullmatch(expected, ran), ran


def test_the_tutorial_has_so_many_steps() -> None:
    assert len(outside.tutorial()) == len(TUTORIAL)
