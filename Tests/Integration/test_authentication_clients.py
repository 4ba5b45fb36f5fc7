"""Real clients that prove to the gateway who they are, each as its users tell it."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.chromium import Chromium
from support.credentials import bcrypt, digest, write
from support.git import git, git_http_backend, make_repository, run
from support.interception import HOST
from support.origin import HTTPOrigin, reply
from support.programs import Settings, answer
from support.secure import forward, tls_of

# A name and a password that have to be encoded in a URL.
USER, PASSWORD, TOKEN = "ann", "se:cr@t/1", "open-sesame.1"
IN_URL = "ann:se%3Acr%40t%2F1"
LARGE, UPLOAD = os.urandom(3 << 20), os.urandom(1 << 20)

PROGRAMS = ["curl", "go", "httpx", "httpx-async", "java", "node-https", "node-undici", "requests",
            "wget"]
# Node's ask for tunnels only.
WAYS = [(name, scheme) for name in PROGRAMS for scheme in ("http", "https")
        if scheme == "https" or not name.startswith("node")]
# There is no way to tell it a token for its proxy.
NO_TOKEN = ["wget"]


@pytest.fixture
def running(gateway, workspace):
    write(workspace / "users", f"{USER}:{bcrypt(PASSWORD)}")
    write(workspace / "tokens", f"ci:{digest(TOKEN)}")
    return gateway({
        "workers": 1,
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                       "authentication": ["basic", "bearer"]}],
        "authentication": {"realm": "Example", "users": str(workspace / "users"),
                           "tokens": str(workspace / "tokens")}})


@pytest.fixture
def upload(workspace):
    file = workspace / "upload"
    file.write_bytes(UPLOAD)
    return file


def answered(seen):
    assert "proxy-authorization" not in seen
    if seen.method == "PUT":
        return reply(seen.body[::-1], "200 OK", "Cache-Control: no-store")
    body = LARGE if seen.target == "/large" else b"answer to " + seen.target.encode()
    return reply(body, "200 OK", "Cache-Control: no-store")


@pytest.fixture
def there(scheme, origin, pki) -> HTTPOrigin:
    tls = pki.root.issue(HOST).server_context() if scheme == "https" else None
    return origin(answered, tls=tls, continues=True)


def proxy(running, credentials: str = IN_URL) -> str:
    return running.proxy_url.replace("://", f"://{credentials}@")


@pytest.mark.parametrize("name, scheme, kind", [
    (name, scheme, kind) for name, scheme in WAYS for kind in ("basic", "bearer")
    if kind == "basic" or name not in NO_TOKEN])
def test_a_client_proves_who_it_is(
        running, there, pki, workspace, upload, toolchains, name, scheme, kind):
    settings = Settings(workspace, proxy(running), pki.root.pem_file)
    if kind == "bearer":
        settings.proxy, settings.bearer = running.proxy_url, TOKEN
    steps = ["GET:/one", "GET:/large", "PUT:/upload", "GET:/after"]
    done = toolchains.programs[name](settings, f"{scheme}://{HOST}:{there.port}", upload, steps)
    assert done.code == 0, done.output
    assert done.answers == [
        answer(b"answer to /one"), answer(LARGE), answer(UPLOAD[::-1]), answer(b"answer to /after")]
    assert [one.target for one in there.requests] == [step.partition(":")[2] for step in steps]
    # Some ask without a proof first.
    count = (1 if scheme == "https" else len(steps)) + running.metric(
        "pinfold_authentications_total", result="missing")
    users = {line.get("user") for line in running.wait_access(int(count)) if line["status"] < 400}
    assert users == {USER if kind == "basic" else "ci"}


@pytest.mark.parametrize("name, scheme", WAYS)
def test_a_client_with_a_wrong_password_gets_an_error(
        running, there, pki, workspace, upload, toolchains, name, scheme):
    settings = Settings(workspace, proxy(running, "ann:wrong"), pki.root.pem_file)
    done = toolchains.programs[name](
        settings, f"{scheme}://{HOST}:{there.port}", upload, ["GET:/"])
    # Java tells of a 407 as of any other response where it was no tunnel that was refused.
    if done.code == 0:
        assert [status for status, *_ in done.answers] == [407], done
    assert there.requests == []
    assert {line["status"] for line in running.wait_access(1)} == {407}


# Certificates


@pytest.fixture
def secured(gateway, pki):
    """A gateway that knows clients by their certificates, and no others."""
    tls = tls_of(pki.root.issue("localhost"), clientRoots=[str(pki.root.pem_file)])
    return gateway({
        "workers": 1, "listeners": [forward(tls) | {"authentication": ["certificate"]}],
        "authentication": {"certificates": [{"subject": "CN=device-*", "user": "device:$1"}]}})


@pytest.fixture
def certificate(pki, workspace):
    made = pki.root.issue("device-7", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    file = workspace / "client.pem"
    file.write_bytes(made.chain_file().read_bytes() + made.key_file.read_bytes())
    return file


@pytest.mark.parametrize("name", ["curl", "go", "httpx", "httpx-async", "node-undici", "requests"])
def test_a_client_proves_who_it_is_by_its_certificate(
        secured, origin, pki, workspace, upload, certificate, toolchains, name):
    there = origin(answered, tls=pki.root.issue(HOST).server_context(), continues=True)
    settings = Settings(workspace, f"https://localhost:{secured.proxy[1]}", pki.root.pem_file,
                        certificate=certificate)
    done = toolchains.programs[name](
        settings, f"https://{HOST}:{there.port}", upload, ["GET:/one", "PUT:/upload"])
    assert done.code == 0, done.output
    assert done.answers == [answer(b"answer to /one"), answer(UPLOAD[::-1])]
    assert {line["user"] for line in secured.wait_access(1)} == {"device:7"}


def test_git_proves_who_it_is_by_its_certificate(secured, origin, pki, workspace, certificate):
    repository = make_repository(workspace)
    there = origin(git_http_backend(repository.parent), tls=pki.root.issue(HOST).server_context())
    settings = {
        "http.proxy": f"https://localhost:{secured.proxy[1]}", "http.sslCAInfo": pki.root.pem_file,
        "http.proxySSLCAInfo": pki.root.pem_file, "http.proxySSLCert": certificate,
        "http.proxySSLKey": certificate}
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    git(*words, "ls-remote", f"https://{HOST}:{there.port}/repo.git")
    assert {line["user"] for line in secured.wait_access(1)} == {"device:7"}


# git, pip and apt


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_git_clones_and_pushes(running, origin, workspace, pki, scheme):
    repository = make_repository(workspace)
    tls = pki.root.issue(HOST).server_context() if scheme == "https" else None
    there = origin(git_http_backend(repository.parent), tls=tls)
    settings = ["-c", f"http.proxy={proxy(running)}", "-c", f"http.sslCAInfo={pki.root.pem_file}"]
    clone = workspace / "clone"
    git(*settings, "clone", "-q", f"{scheme}://{HOST}:{there.port}/repo.git", str(clone))
    (clone / "new").write_bytes(UPLOAD)
    git("add", "new", cwd=clone)
    git("commit", "-q", "-m", "new", cwd=clone)
    git(*settings, "push", "-q", "origin", "main", cwd=clone)
    assert git("rev-parse", "HEAD", cwd=clone) == git("rev-parse", "main", cwd=repository)
    with pytest.raises(AssertionError, match="407"):
        git("-c", f"http.proxy={proxy(running, 'ann:wrong')}", "ls-remote",
            f"{scheme}://{HOST}:{there.port}/repo.git")


def test_pip_downloads(running, origin, workspace):
    wheel = workspace / "example-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("example.py", "")
        made.writestr("example-1.0.dist-info/METADATA",
                      "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
        made.writestr("example-1.0.dist-info/WHEEL",
                      "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("example-1.0.dist-info/RECORD", "")

    def index(seen):
        if seen.target.endswith(".whl"):
            return reply(wheel.read_bytes())
        page = f'<a href="/{wheel.name}">{wheel.name}</a>'
        return reply(page.encode(), "200 OK", "Content-Type: text/html")

    there = origin(index)
    (workspace / "got").mkdir()
    command = [sys.executable, "-m", "pip", "--isolated", "--no-cache-dir",
               "--disable-pip-version-check", "download", "-q", "--no-deps", "--retries", "0",
               "--index-url", f"http://{HOST}:{there.port}/simple", "--trusted-host", HOST,
               "-d", str(workspace / "got")]
    run(*command, "--proxy", proxy(running), "example")
    assert (workspace / "got" / wheel.name).read_bytes() == wheel.read_bytes()
    asked = len(there.requests)
    with pytest.raises(AssertionError, match="407|No matching distribution"):
        run(*command, "--proxy", proxy(running, "ann:wrong"), "example")
    assert len(there.requests) == asked


def test_apt_updates_its_lists(running, origin, workspace):
    packages = b"Package: example\nVersion: 1.0\nArchitecture: all\nFilename: ./a.deb\nSize: 1\n" \
        b"SHA256: " + hashlib.sha256(b"a").hexdigest().encode() + b"\n\n"

    def repository(seen):
        if seen.target.endswith("/Packages"):
            return reply(packages)
        return reply(b"", "404 Not Found")

    there = origin(repository)
    (workspace / "lists" / "partial").mkdir(parents=True)
    (workspace / "cache" / "archives" / "partial").mkdir(parents=True)
    source = workspace / "sources.list"
    source.write_text(f"deb [trusted=yes] http://{HOST}:{there.port}/ ./\n")

    options = {
        "Dir::Etc::SourceList": source, "Dir::Etc::SourceParts": "-", "Dir::Etc::Parts": "-",
        "Dir::State::Lists": workspace / "lists", "Dir::Cache": workspace / "cache",
        "APT::Sandbox::User": "root", "Acquire::Retries": 0, "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "false", "APT::Update::Error-Mode": "any"}
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    # An update would ask for nine files, and each wrong password takes longer than the one before.
    with pytest.raises(AssertionError, match="407"):
        run("/usr/lib/apt/apt-helper", *words, "-o",
            f"Acquire::http::Proxy={proxy(running, 'ann:wrong')}", "download-file",
            f"http://{HOST}:{there.port}/Packages", str(workspace / "file"))
    assert there.requests == []
    run("apt-get", *words, "-o", f"Acquire::http::Proxy={proxy(running)}", "update")
    assert [file.read_bytes() for file in (workspace / "lists").glob("*Packages*")] == [packages]


# A browser


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_browser_asks_its_user(running, origin, pki, workspace, scheme):
    tls = pki.root.issue(HOST).server_context() if scheme == "https" else None
    there = origin(lambda seen: reply(b"<title>here</title>", "200 OK", "Content-Type: text/html"),
                   tls=tls)
    url = f"{scheme}://{HOST}:{there.port}/"
    browser = Chromium(workspace, running.proxy_url, [pki.root.pem_file])
    with browser.session() as session:
        assert "<title>here" not in session.shows(url, (USER, "wrong"))
        assert session.asked == ["Example"] * 2
        assert there.requests == []
        assert "<title>here</title>" in session.shows(url, (USER, PASSWORD))
        assert len(session.asked) == 3
        # It remembers.
        assert "<title>here</title>" in session.shows(url + "again", None)
        assert len(session.asked) == 3
