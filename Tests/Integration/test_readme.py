"""What README and the pages show works as printed: configurations, the demonstration, links; and
what the other pages name exists."""

from __future__ import annotations

import json
import os
import re
import signal
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cryptography.x509.oid import ExtendedKeyUsageOID
from support import pki as certificates
from support.checkout import MODULES, PAGES
from support.examples import EXAMPLES, README, Block, agrees, blocks, configurations, sessions
from support.gateway import BINARY, ROOT, besides_open_hosts, free_port
from support.revocation import crl
from support.transparency import Log, log_list
from support.wait import until

CHANGELOG = ROOT / "CHANGELOG.md"


def demonstrated() -> list[tuple[str, list[str]]]:
    """The requests that README shows of the demonstration, and their output."""
    return [(command, output) for command, output in sessions(README)
            if ".localhost:8443/" in command]


def test_readme_fits_in_180_lines() -> None:
    assert len(README.read_text().splitlines()) <= 180


def test_what_is_unreleased_fits_in_100_lines_of_the_changelog() -> None:
    unreleased = CHANGELOG.read_text().split("## [Unreleased]\n", 1)[1].split("\n## [", 1)[0]
    assert len(unreleased.splitlines()) <= 100


def test_there_are_configurations() -> None:
    assert len(configurations()) >= 14
    assert [block.page for block in configurations()].count(README) == 1


@pytest.mark.parametrize(
    "block", configurations(), ids=lambda block: f"{block.page.stem}: {block.heading}")
def test_a_configuration_checks_as_printed_without_a_warning(
    block: Block, tmp_path: Path, authority_file: Path, pki
) -> None:
    text = block.text
    (tmp_path / "corp-ca.pem").write_bytes(authority_file.read_bytes())
    (tmp_path / "devices-ca.pem").write_bytes(authority_file.read_bytes())
    proxy = pki.root.issue("proxy.example.com", days=(-1, 90))
    (tmp_path / "proxy.pem").write_bytes(proxy.chain_file().read_bytes())
    shutil.copy(proxy.key_file, tmp_path / "proxy.key")
    client = pki.root.issue("client", usage=ExtendedKeyUsageOID.CLIENT_AUTH, days=(-1, 90))
    (tmp_path / "client.pem").write_bytes(client.chain_file().read_bytes())
    shutil.copy(client.key_file, tmp_path / "client.key")
    authority = certificates.root(tmp_path, "Corp")
    (tmp_path / "corp.crl").write_bytes(crl(authority).public_bytes(certificates.PEM))
    if "corp.crl" in text:
        (tmp_path / "corp-ca.pem").write_bytes(authority.pem)
    log_list(tmp_path / "log_list.json", Log("one").entry(), Log("two").entry())
    if "interception" in text:
        command = next(line for one in blocks(block.page) for line in one.text.splitlines()
                       if line.startswith("pinfold ca init "))
        subprocess.run([BINARY, *command.split()[1:]], cwd=tmp_path, check=True, timeout=30)
    file = tmp_path / "pinfold.yaml"
    file.write_text(text)
    checked = subprocess.run(
        [BINARY, "check", "--config", file], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stderr
    assert besides_open_hosts(checked.stderr) == ""
    effective = yaml.safe_load(checked.stdout)
    for key, value in yaml.safe_load(text).items():
        if isinstance(value, list):
            assert len(effective[key]) == len(value)


def test_the_configuration_of_readme_reports_and_without_one_line_enforces(tmp_path: Path) -> None:
    (block,) = [one for one in configurations() if one.page == README]
    lines = block.text.splitlines()
    (reporting,) = [line for line in lines if "enforce: false" in line]
    file = tmp_path / "pinfold.yaml"

    def state(kept: list[str]) -> str:
        file.write_text("\n".join(kept) + "\n")
        explained = subprocess.run(
            [BINARY, "explain", "--json", "http://api.example.com/", "--config", file,
             "--address", "23.192.228.80"], capture_output=True, text=True, timeout=30)
        assert (explained.returncode, explained.stderr) == (0, "")
        shown = json.loads(explained.stdout)
        assert [way["way"] for way in shown["ways"] if way["asking"] == "absolute"] == ["upgrade"]
        (pinset,) = shown["pinsets"]
        return pinset["state"]

    assert state(lines) == "reported"
    assert state([line for line in lines if line != reporting]) == "enforced"


@pytest.fixture(scope="module")
def authority_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("readme") / "ca.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", os.devnull, "-out", file, "-subj", "/CN=Corp CA", "-days", "2"],
        check=True, capture_output=True)
    return file


@pytest.fixture(scope="module")
def demonstration() -> Iterator[dict[str, str]]:
    """`deploy/demo` on free ports; yields what replaces the ports that README prints."""
    proxy, server = free_port(), free_port()
    process = subprocess.Popen(
        [ROOT / "deploy/demo"], start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PINFOLD_BINARY": str(BINARY), "PROXY_PORT": str(proxy),
             "SERVER_PORT": str(server)})

    def answers() -> bool:
        assert process.poll() is None, process.stdout and process.stdout.read().decode()
        url = f"http://right.localhost:{server}/hello"
        asked = subprocess.run(
            ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}",
             "-x", f"http://127.0.0.1:{proxy}", url], capture_output=True, text=True, timeout=20)
        return asked.stdout == "200"

    try:
        until(answers, "the demonstration serves", 30)
        yield {":8080": f":{proxy}", ":8443": f":{server}"}
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def test_the_demonstration_shows_a_right_pin_a_wrong_one_and_a_refused_tunnel(
    demonstration: dict[str, str]
) -> None:
    outputs = []
    for command, shown in demonstrated():
        for printed, actual in demonstration.items():
            command = command.replace(printed, actual)
            shown = [line.replace(printed, actual) for line in shown]
        ran = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=30)
        errors = [line for line in ran.stderr.splitlines() if line.startswith("curl: ")]
        agrees(ran.stdout + "\n".join(errors), shown)
        outputs.append(ran)
    assert len(outputs) == 3
    right, wrong, tunnel = outputs
    assert right.stdout == "hello from a server whose key is pinned\n"
    assert wrong.stdout.startswith("502 tls-no-pin-matches\n")
    assert "the server's chain has sha256/" in wrong.stdout
    assert tunnel.returncode == 56
    assert "CONNECT tunnel failed, response 403" in tunnel.stderr


def test_the_demonstration_shows_what_to_try_and_warns_of_nothing() -> None:
    proxy, server = free_port(), free_port()
    process = subprocess.Popen(
        [ROOT / "deploy/demo"], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PINFOLD_BINARY": str(BINARY), "PROXY_PORT": str(proxy),
             "SERVER_PORT": str(server)})
    assert process.stderr is not None
    shown = []
    for line in process.stderr:
        shown.append(line)
        if "listening" in line and "admin" in line:
            break
    process.send_signal(signal.SIGTERM)
    shown.append(process.communicate(timeout=20)[1])
    text = "".join(shown)
    assert len(demonstrated()) == 3
    for command, _ in demonstrated():
        assert command.replace(":8080", f":{proxy}").replace(":8443", f":{server}") in text, text
    assert "warning" not in text, text


def test_the_demonstration_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [ROOT / "deploy/demo"], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PINFOLD_BINARY": str(BINARY), "TMPDIR": str(tmp_path),
             "PROXY_PORT": str(free_port()), "SERVER_PORT": str(free_port())})
    assert process.stderr is not None
    assert any("listening" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_refusal_reads_as_printed(gateway) -> None:
    command, printed = next(one for one in sessions() if "403 destination-refused" in one[1])
    assert command.endswith(" http://10.0.0.1/")
    agrees(gateway().get("http://10.0.0.1/").body.decode(), printed)


# Pages that name types and functions.
INNER_WORKINGS = ["Architecture", "Client", "Concurrency", "Design", "Phases"]

COMMUNITY = [ROOT / ".github/CONTRIBUTING.md", ROOT / ".github/SECURITY.md"]


@pytest.mark.parametrize(
    "page", [README, *COMMUNITY, *sorted(path for path in PAGES.values() if path.suffix == ".md")], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    # DocC finds pictures by their names, in both schemes.
    for name in re.findall(r"!\[[^\]]*\]\(([\w-]+)\)", text):
        for scheme in ("", "~dark"):
            assert (page.parent / "Resources" / f"{name}{scheme}.png").exists(), name
    text = re.sub(r"!\[[^\]]*\]\([\w-]+\)", "", text)
    for target, anchor in re.findall(r"\]\(([^)#<\s]*)(#[^)\s]+)?\)", text):
        if "://" not in target:
            there = page.parent / target if target else page
            assert there.exists(), target
            assert not anchor or anchor.lower() in anchors(there), target + anchor
    for name in re.findall(r"<doc:([A-Za-z-]+)(?:#[^>]+)?>", page.read_text()):
        # DocC knows the pages of one catalogue at a time.
        assert name in PAGES and page.parent in PAGES[name].parents, name


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_readme_links_every_page_with_examples() -> None:
    linked = re.findall(r"\]\(([^)\s]+)\)", README.read_text())
    for page in EXAMPLES[1:]:
        assert str(page.relative_to(ROOT)) in linked


def words(page: Path) -> list[str]:
    """What is set as code in the text or in the indented commands, word by word."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    code = re.findall(r"`([^`]+)`", text) + re.findall(r"^ {4}(\S.*|    \S.*)$", text, re.MULTILINE)
    found = " ".join(one.partition("  #")[0] for one in code).split()
    return [word.strip("(),;:\"'").rstrip(".") for word in found]


def existing_names() -> set[str]:
    """The files at the top and below Sources and Tests by their names, folders too, the words of
    the code, and the words of the pages of metrics and of configuration keys."""
    paths = [path for folder in ("Sources", "Tests") for path in (ROOT / folder).rglob("*")]
    pages = [PAGES["Metrics"], PAGES["Configuration"]]
    code = [path for path in paths if path.suffix in {".swift", ".py"}]
    text = "\n".join(path.read_text() for path in code + pages)
    return {path.name for path in [*ROOT.iterdir(), *paths]} | set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    "page", [*COMMUNITY, *(PAGES[name] for name in INNER_WORKINGS)], ids=lambda page: page.name)
def test_the_files_and_names_of_a_page_exist(page: Path) -> None:
    names = existing_names()
    found = 0
    for word in words(page):
        if re.match(r"(Sources|Tests|deploy|config|\.ci)/", word):
            assert (ROOT / word).exists(), word
        elif re.fullmatch(r"[\w+/]+\.(swift|py|md)|pinfold_\w+", word):
            # `Exchange+Name.swift` stands for any.
            assert word.rpartition("/")[2] in names or "+Name." in word, word
        elif named := re.findall(r"\b[A-Za-z]+[a-z][A-Z]\w*", word):
            assert set(named) <= names, word
        else:
            continue
        found += 1
    assert found >= 3


def test_the_version_is_declared_once() -> None:
    declaration = MODULES["pinfold"] / "Pinfold.swift"
    declared = re.findall(r'= "(\d+\.\d+\.\d+)"', declaration.read_text())
    assert len(declared) == 1
    # Not as that of a package in a list of requirements.
    spelt = re.compile(rf"(?<!==)(?<![\d.]){re.escape(declared[0])}(?![\d.])")
    files = [ROOT / "Package.swift", README]
    for folder in ("Sources", "Tests", "config", "deploy", ".github"):
        # Not what packages are built from, beside the sources of their users.
        files += [path for path in (ROOT / folder).rglob("*")
                  if path.is_file() and ".build" not in path.parts]
    found = [path for path in files if spelt.search(path.read_text(errors="replace"))]
    assert found == [declaration]


def test_the_version_is_that_of_the_changelogs_newest_release(gateway) -> None:
    changelog = CHANGELOG.read_text()
    headings = re.findall(r"^## \[(\d.*)\]", changelog, re.MULTILINE)
    # Until there is a release, the changelog says what the version is.
    stated = re.findall(r"`pinfold --version` prints\s+(\d+\.\d+\.\d+)\.$", changelog, re.MULTILINE)
    newest = [*headings, *stated][0]
    result = subprocess.run([BINARY, "--version"], capture_output=True, text=True, timeout=30)
    exposed = gateway().admin_get("/metrics").body.decode()
    built = re.search(rf'pinfold_build_info{{version="{re.escape(newest)}",revision="(\w+(?:-dirty)?)"',
                      exposed)
    assert built
    commit = "" if built[1] == "unknown" else f" ({built[1]})"
    assert (result.returncode, result.stdout) == (0, f"{newest}{commit}\n")


def test_the_metrics_page_lists_exactly_the_metrics(gateway) -> None:
    # The shared cache has metrics, whether its engine is there or not.
    running = gateway({"hosts": [{"match": ["a.example"], "upgrade": "https"}],
                       "cache": {"shared": {"url": "unix:/nowhere/redis.sock"}}})
    text = running.admin_get("/metrics").body.decode()
    exposed = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    page = (PAGES["Metrics"]).read_text()
    assert exposed == set(re.findall(r"^\| `([a-z_]+)` \| (?:counter|gauge|histogram) ", page, re.MULTILINE))


def test_the_queries_of_the_metrics_page_are_valid_and_name_real_metrics(tmp_path: Path) -> None:
    page = (PAGES["Metrics"]).read_text()
    listed = set(re.findall(r"^\| `([a-z_]+)` \| ", page, re.MULTILINE))
    rows = re.search(r"## Questions and queries\n+(.*?)\n\n## ", page, re.DOTALL)
    assert rows is not None
    queries = [query.replace("\\|", "|") for query in re.findall(r"\| `(.*)` \|$", rows[1], re.MULTILINE)]
    assert len(queries) >= 12
    for query in queries:
        for name in re.findall(r"pinfold_[a-z_]+", query):
            assert re.sub("_(bucket|sum|count)$", "", name) in listed, query
    rules = [{"record": f"question:{index}", "expr": query} for index, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "questions", "rules": rules}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stdout + checked.stderr
