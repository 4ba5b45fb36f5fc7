"""`pinfold cache`, and the resources of the API that it uses."""

from __future__ import annotations

import gzip
import json
import subprocess

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.gateway import BINARY, Gateway, free_port, run_pinfold
from support.origin import Request, reply
from support.secure import forward, reverse as secure_reverse, secure_wire, tls_of
from support.wait import until
from support.wire import request

FRESH = "Cache-Control: max-age=600"


def answer(seen: Request) -> bytes:
    path = seen.target
    if path.startswith("/none"):
        return reply(b"no", "404 Not Found", "Cache-Control: no-store")
    if path.startswith("/private"):
        return reply(b"yours", "200 OK", "Cache-Control: private")
    if path.startswith("/sitemap"):
        return reply(SITEMAPS[path], "200 OK", "Cache-Control: no-store")
    if path.startswith("/language"):
        return reply(seen.get("accept-language").encode(), "200 OK", FRESH, "Vary: Accept-Language",
                     "Content-Type: text/plain; charset=utf-8")
    return reply(path.encode() * 10, "200 OK", FRESH, f"Surrogate-Key: all {path.strip('/')}",
                 "Content-Type: text/html")


SITEMAPS: dict[str, bytes] = {}


@pytest.fixture
def there(origin):
    return origin(answer)


@pytest.fixture
def running(gateway) -> Gateway:
    return gateway({})


def cache(running: Gateway, *arguments: str, status: int = 0, **options: str) -> str:
    done = run_pinfold("cache", *arguments, "--admin", "%s:%d" % running.admin, **options)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout


def get(running: Gateway, url: str, **fields: str):
    return running.ask(request(url, **fields))


def is_hit(running: Gateway, url: str, **fields: str) -> bool:
    return "hit" in get(running, url, **fields).cache_status


def stored(running: Gateway, *urls: str) -> None:
    for url in urls:
        get(running, url)
        assert is_hit(running, url)


def api(running: Gateway, path: str, body: dict | None = None):
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "Host: localhost"]
    data = b"" if body is None else json.dumps(body).encode()
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return running.ask("\r\n".join(lines).encode() + b"\r\n\r\n" + data, "admin")


# Purging


def test_urls_prefixes_hosts_tags_and_everything_are_purged(running, there):
    a, b, c = (there.url(path) for path in ("/a", "/b/1", "/b/2"))
    stored(running, a, b, c)
    assert cache(running, "purge", a).startswith("purge ")
    assert [is_hit(running, url) for url in (a, b, c)] == [False, True, True]
    cache(running, "purge", "--prefix", there.url("/b/"), "--wait")
    assert [is_hit(running, url) for url in (a, b, c)] == [True, False, False]
    cache(running, "purge", "--tag", "a")
    assert [is_hit(running, url) for url in (a, b, c)] == [False, True, True]
    cache(running, "purge", "--host", "127.0.0.1")
    assert [is_hit(running, url) for url in (a, b, c)] == [False] * 3
    cache(running, "purge", "--everything")
    assert [is_hit(running, url) for url in (a, b, c)] == [False] * 3
    log = running.log()
    assert log.count("purged ") >= 5 and "administrative command" in log


def test_a_soft_purge_and_a_dry_run(running, there):
    url = there.url("/a")
    stored(running, url)
    assert "would purge" in cache(running, "purge", "--tag", "all", "--dry-run")
    assert is_hit(running, url)
    value = json.loads(cache(running, "purge", url, "--soft", "--json"))
    assert value["soft"] is True and value["id"] > 0
    assert get(running, url).cache_status["fwd"] == "stale"


def test_what_says_nothing_is_refused(running):
    for body in ({}, {"urls": []}, {"urls": "x"}, {"urls": ["ftp://x"]}, {"hosts": ["a b"]},
                 {"what": 1}, {"everything": 1}, {"tags": [""]}, {"tags": ["x" * 2000]},
                 {"urls": ["http://a.test/"] * 1001}, []):
        response = api(running, "/api/v1/cache/purge", body)
        assert response.status == 400, body
        assert response.get("content-type") == "application/problem+json"
        assert json.loads(response.body)["type"].endswith("invalid-purge")
    assert cache(running, "purge", "ftp://x", status=1) == ""


def test_no_web_page_purges(running):
    for fields in ("Content-Type: text/plain", "Content-Type: application/json\r\nOrigin: http://x"):
        response = running.ask(
            f"POST /api/v1/cache/purge HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
            'Content-Length: 19\r\n\r\n{"everything":true}', "admin")
        assert response.status in (403, 415)


def test_the_progress_of_a_purge_can_be_asked_for(running, there):
    stored(running, there.url("/a"))
    value = json.loads(api(running, "/api/v1/cache/purge", {"hosts": ["127.0.0.1"]}).body)
    progress = json.loads(api(running, f"/api/v1/cache/purge?id={value['id']}").body)
    assert progress["id"] == value["id"]
    assert api(running, "/api/v1/cache/purge?id=999999").status == 404
    assert api(running, "/api/v1/cache/purge").status == 400


def test_without_a_cache_the_resources_say_so(gateway):
    running = gateway({"cache": {"enabled": False}})
    for path in ("entries", "stats", "entry?url=http://a.test/", "export?session=a&piece=0"):
        response = api(running, f"/api/v1/cache/{path}")
        assert response.status == 409 and b"no-cache" in response.body


KEY = {"query": {"ignore": ["utm_*"]}}


@pytest.mark.parametrize("way", ["forward", "reverse", "balanced"])
def test_a_url_is_purged_under_the_key_that_its_entry_makes_of_it(gateway, there, way):
    upstream = there.url("").rstrip("/")
    # The URL names the listener's own address.
    listener = {"name": "web", "address": f"127.0.0.1:{free_port()}", "kind": "reverse"}
    listener |= ({"upstreams": {"servers": [{"url": upstream}]}} if way == "balanced"
                 else {"upstream": upstream})
    running = gateway({
        "listeners": [listener, {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
        "hosts": [{"match": ["127.0.0.1"], "cache": {"key": KEY},
                   "request": {"path": {"prefixes": {"/old": "/new"}}}}]})
    name = "proxy" if way == "forward" else "web"
    base = upstream if way == "forward" else "http://%s:%d" % running.listeners["web"]

    def hits(path: str) -> bool:
        target = base + path if way == "forward" else path
        return "hit" in running.ask(request(target, host="a.test"), name).cache_status

    for path in ("/p?utm_source=x&a=1", "/old/page?a=1"):
        hits(path)
        assert hits(path)
        cache(running, "purge", base + path)
        assert not hits(path), path


# Looking in


def test_what_is_stored_is_listed(running, there):
    stored(running, *(there.url(path) for path in ("/a", "/long" * 50, "/b")))
    for _ in range(3):
        get(running, there.url("/b"))
    text = cache(running, "ls", "--order", "hits", "--limit", "2")
    lines = text.splitlines()
    assert lines[0].split() == ["STATUS", "SIZE", "AGE", "FRESH", "FOR", "HITS", "TIER", "TRUST",
                                "URL"]
    assert lines[1].endswith(there.url("/b")) and lines[1].startswith("200 ")
    assert lines[-1].startswith("3 responses, ") and lines[-1].endswith("of which 2 are shown")
    largest = cache(running, "ls", "127.0.0.1", "--order", "size", "--limit", "1")
    assert there.url("/long" * 50) in largest
    assert cache(running, "ls", "other.test").splitlines()[-1] == "0 responses, 0 B"
    value = json.loads(cache(running, "ls", "--json").splitlines()[0])
    assert value["url"].startswith("http://127.0.0.1:") and value["type"] == "text/html"
    assert "all" in value["tags"]


def test_pages_follow_one_another(running, there):
    urls = {there.url(f"/{number}") for number in range(25)}
    stored(running, *urls)
    found, cursor = set(), ""
    for _ in range(100):
        page = json.loads(api(running, f"/api/v1/cache/entries?limit=7{cursor}").body)
        assert len(page["entries"]) <= 7
        found |= {entry["url"] for entry in page["entries"]}
        if "next" not in page:
            break
        cursor = f"&cursor={page['next']}"
    assert found == urls
    for wrong in ("limit=0", "limit=1001", "cursor=x", "host=a%20b", "order=1"):
        assert api(running, f"/api/v1/cache/entries?{wrong}").status == 400, wrong


def test_a_url_is_shown_with_what_would_become_of_a_request(running, there):
    url = there.url("/language")
    get(running, url, Accept_Language="de")
    text = cache(running, "show", url, "-H", "Accept-Language: de")
    assert "a GET now is answered with it" in text and "(max-age)" in text
    assert "selected  by accept-language" in text and "    Content-Type: text/plain" in text
    assert "(vary-miss)" in cache(running, "show", url, "-H", "Accept-Language: en")
    confirmed = cache(running, "show", url, "-H", "Accept-Language: de", "-H",
                      "Cache-Control: no-cache")
    assert "request-no-cache" in confirmed
    assert "nothing is stored for" in cache(running, "show", there.url("/other"), status=1)
    value = json.loads(cache(running, "show", url, "--json"))
    assert value["variants"][0]["vary"] == ["accept-language"]
    assert value["variants"][0]["answer"] == "not-used"


def test_looking_in_changes_no_freshness(gateway, origin):
    """`show` judges what it reads from the disk by the route's rules, and leaves it there."""
    there = origin(lambda seen: reply(b"x", "200 OK", "Cache-Control: max-age=86400",
                                      "CDN-Cache-Control: max-age=60"))
    running = gateway({"listeners": [
        {"name": "web", "address": f"127.0.0.1:{free_port()}", "kind": "reverse",
         "upstream": there.url("").rstrip("/")}]})
    asked = request("/a", host="a.test")
    running.ask(asked, "web")
    running.restart()
    running.wait_for_disk()
    url = "http://%s:%d/a" % running.listeners["web"]
    value = json.loads(cache(running, "show", url, "-H", "Host: a.test", "--json"))
    assert value["variants"][0]["freshFor"] <= 60
    cache(running, "export", str(running.folder / "archive"))
    found = running.ask(asked, "web").cache_status
    assert "hit" in found and int(found["ttl"]) <= 60


def test_looking_in_leaves_everything_as_it_is(gateway, there, workspace):
    running = gateway({"cache": {"memory": "1MiB"}})
    running.wait_for_disk()
    urls = [there.url(path) for path in ("/a", "/b", "/long" * 300)]
    stored(running, *urls)

    def listed() -> list[dict]:
        entries = [json.loads(line) for line in cache(running, "ls", "--json").splitlines()]
        return [{key: entry[key] for key in ("url", "hits", "tiers", "expires")}
                for entry in entries]

    for tiers in (["memory", "disk"], ["disk"]):
        until(lambda tiers=tiers: [entry["tiers"] for entry in listed()] == [tiers] * 3,
              f"all is in {tiers}")
        before = listed()
        assert [entry["hits"] for entry in before] == [1] * 3
        for _ in range(3):
            for url in urls:
                cache(running, "show", url)
            cache(running, "export", str(workspace / "archive"))
        assert listed() == before
        running.restart()
        running.wait_for_disk()


def test_secrets_are_not_shown(gateway, origin):
    there = origin(lambda seen: reply(b"x", "200 OK", "Cache-Control: public, max-age=600",
                                      "Vary: X-Secret", "Set-Cookie: a=s3cret"))
    running = gateway({})
    url = there.url("/a")
    get(running, url, X_Secret="hidden-value")
    for text in (cache(running, "show", url), cache(running, "ls", "--json"),
                 cache(running, "sql", "SELECT * FROM cache")):
        assert "hidden-value" not in text and "s3cret" not in text


def test_stats_add_up(running, there):
    stored(running, there.url("/a"), there.url("/b"))
    assert "memory  2 responses" in cache(running, "stats")
    assert cache(running, "stats", "--hosts").splitlines()[1].split()[0] == "2"


# SQL


def test_questions_are_answered_in_sql(running, there):
    stored(running, there.url("/a"), there.url("/b"))
    text = cache(running, "sql", "SELECT host, count(*) AS responses FROM cache GROUP BY host",
                 "--format", "csv")
    # The lines end in CRLF (RFC 4180), which is read as text here.
    assert text.split() == ["host,responses", f"{there.authority},2"]
    rows = json.loads(cache(running, "sql", "SELECT url, status, tags FROM cache ORDER BY url",
                            "--format", "json"))
    assert rows[0] == {"url": there.url("/a"), "status": 200, "tags": "all a"}
    for refused in ("ATTACH 'x' AS y", "DELETE FROM entry", "SELECT 1; SELECT 2",
                    "PRAGMA user_version"):
        assert cache(running, "sql", refused, status=1) == ""


def test_the_recipes_of_the_page_work(running, there):
    from support.checkout import PAGES
    stored(running, there.url("/a"))
    page = PAGES["CacheOperation"].read_text()
    recipes = [part.split('"')[0] for part in page.split('pinfold cache sql "')[1:]]
    assert len(recipes) >= 3
    for recipe in recipes:
        cache(running, "sql", recipe)


# Warming


def test_lists_and_sitemaps_are_requested(running, there, workspace):
    SITEMAPS["/sitemap.xml"] = (
        f"<sitemapindex><sitemap><loc>{there.url('/sitemap-1.xml.gz')}</loc></sitemap>"
        "</sitemapindex>").encode()
    SITEMAPS["/sitemap-1.xml.gz"] = gzip.compress(
        ("<urlset>" + "".join(f"<url><loc>{there.url(f'/page/{number}')}</loc></url>"
                              for number in range(20)) + "</urlset>").encode())
    text = cache(running, "warm", "--sitemap", there.url("/sitemap.xml"))
    assert text.startswith("20 stored, 0 were stored before, 0 not stored, 0 failed")
    assert is_hit(running, there.url("/page/19"))
    (workspace / "list").write_text(
        f"# a comment\n{there.url('/page/1')}\n\n{there.url('/private')}\n{there.url('/none')}\n")
    value = json.loads(cache(running, "warm", "--list", str(workspace / "list"), "--json",
                             "--parallel", "1", status=1))
    assert (value["stored"], value["present"]) == (0, 1)
    assert value["notStored"] == {"private": 1} and value["failed"] == {"status 404": 1}


def test_a_fetched_sitemap_names_no_files_and_no_other_hosts(running, there, workspace):
    secret = workspace / "secret.xml"
    secret.write_text("<urlset><url><loc>http://127.0.0.1/</loc></url></urlset>")
    SITEMAPS["/sitemap-2.xml"] = (
        f"<sitemapindex><sitemap><loc>{secret}</loc></sitemap><sitemap><loc>/dev/zero</loc>"
        "</sitemap><sitemap><loc>http://other.test/s.xml</loc></sitemap>"
        f"<sitemap><loc>{there.url('/sitemap-3.xml')}</loc></sitemap></sitemapindex>").encode()
    SITEMAPS["/sitemap-3.xml"] = (
        f"<urlset><url><loc>{there.url('/own')}</loc></url>"
        "<url><loc>http://other.test/</loc></url></urlset>").encode()
    text = cache(running, "warm", "--sitemap", there.url("/sitemap-2.xml"))
    assert text.startswith("1 stored, 0 were stored before, 0 not stored, 0 failed")


def test_a_reverse_listener_is_warmed_by_its_paths(gateway, there):
    running = gateway({"listeners": [
        {"name": "web", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": there.url("").rstrip("/")}]})
    address = "%s:%d" % running.listeners["web"]
    cache(running, "warm", "http://www.example.com/a", "--reverse", address)
    asked = request("/a", host="www.example.com")
    assert "hit" in running.ask(asked, "web").cache_status


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue("proxy.test", "localhost", "127.0.0.1")


def test_a_listener_with_tls_is_warmed_once_it_is_known_to_be_the_gateway(
        gateway, there, leaf, pki):
    running = gateway({"listeners": [forward(tls_of(leaf))]})
    address = "127.0.0.1:%d" % running.proxy[1]
    root = ["--cacert", str(pki.root.pem_file)]
    config = ["--config", str(running.config_file)]
    ways = [
        root, config, [*root, "--proxy", f"https://{address}"],
        [*root, "--proxy", f"https://localhost:{running.proxy[1]}"]]
    for number, options in enumerate(ways):
        urls = [there.url(f"/{number}/{page}") for page in range(6)]
        assert cache(running, "warm", *urls, *options).startswith("6 stored"), options
        assert cache(running, "warm", *urls, *options).startswith("0 stored, 6 were stored before")
    asked = len(there.requests)
    other = ["--cacert", str(pki.rogue_root.pem_file)]
    refused = [[], other, ["--proxy", f"https://{address}"], [*config, "--proxy", f"https://{address}"],
               [*other, "--proxy", f"https://{address}"]]
    for options in refused:
        done = run_pinfold("cache", "warm", there.url("/x"), "--admin", "%s:%d" % running.admin,
                           *options)
        assert done.returncode == 2 and "no secure connection" in done.stderr, (options, done)
        assert "expected --cacert" in done.stderr
    # In clear text it is no listener.
    assert "failed" in cache(running, "warm", there.url("/x"), "--proxy", address, status=1)
    assert len(there.requests) == asked


def test_a_sitemap_is_fetched_over_tls_as_well(gateway, there, leaf, pki):
    running = gateway({"listeners": [forward(tls_of(leaf))]})
    SITEMAPS["/sitemap-4.xml"] = (
        f"<urlset><url><loc>{there.url('/large' * 300)}</loc></url></urlset>").encode()
    text = cache(running, "warm", "--sitemap", there.url("/sitemap-4.xml"), "--cacert",
                 str(pki.root.pem_file))
    assert text.startswith("1 stored, 0 were stored before, 0 not stored, 0 failed")


def test_what_clients_with_tls_get_is_requested_with_tls(gateway, there, leaf, pki):
    running = gateway({"listeners": [secure_reverse(tls_of(leaf), there.url("").rstrip("/"))]})
    listener = "https://127.0.0.1:%d" % running.listeners["route"][1]
    cache(running, "warm", "https://www.example.com/a", "--reverse", listener, "--cacert",
          str(pki.root.pem_file))
    with secure_wire(running, pki.root, "route") as wire:
        assert "hit" in wire.ask(request("/a", host="www.example.com")).cache_status


def test_a_listener_that_wants_a_certificate_gets_it(gateway, there, leaf, pki):
    running = gateway({"listeners": [
        forward(tls_of(leaf, clientRoots=[str(pki.root.pem_file)]))]})
    client = pki.root.issue("operator", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    root = ["--cacert", str(pki.root.pem_file)]
    text = cache(running, "warm", there.url("/a"), *root, "--cert", str(client.chain_file()),
                 "--key", str(client.key_file))
    assert text.startswith("1 stored")
    done = run_pinfold("cache", "warm", there.url("/b"), *root, "--admin",
                       "%s:%d" % running.admin)
    assert done.returncode != 0 and (
        "no secure connection" in done.stdout + done.stderr), (done.stdout, done.stderr)


@pytest.mark.parametrize("listener", [
    "localhost", "unix:/run/x", "ftp://localhost:1", "https://localhost:x", "https://localhost:0",
    "https://"])
def test_what_names_no_listener_is_refused(listener):
    for option in ("--proxy", "--reverse"):
        done = run_pinfold("cache", "warm", "http://127.0.0.1/", option, listener)
        assert done.returncode == 2 and "expected ADDRESS:PORT" in done.stderr, done


def test_what_cannot_be_requested_is_reported(running, there):
    done = run_pinfold("cache", "warm", "http://127.0.0.1/", "--proxy", "127.0.0.1:1")
    assert done.returncode == 1 and "failed (cannot connect): 1" in done.stdout
    assert run_pinfold("cache", "warm", "ftp://x/").returncode == 2
    assert run_pinfold("cache", "warm").returncode == 64
    rate = cache(running, "warm", *(there.url(f"/{number}") for number in range(5)), "--rate", "100")
    assert rate.startswith("5 stored")


# Export and import


class InParts:
    """An origin that answers ranges, under a tag that can change."""

    def __init__(self):
        self.body = bytes(range(256)) * 4000
        self.tag = '"one"'
        self.asked = []

    def __call__(self, seen) -> bytes:
        self.asked.append(seen)
        wanted, condition = seen.get("range"), seen.get("if-range")
        if not wanted or condition not in ("", self.tag):
            return reply(self.body, "200 OK", FRESH, f"ETag: {self.tag}")
        first, last = wanted.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or len(self.body)) + 1, len(self.body))
        return reply(self.body[start:end], "206 Partial Content", FRESH, f"ETag: {self.tag}",
                     f"Content-Range: bytes {start}-{end - 1}/{len(self.body)}")


@pytest.fixture
def there_in_parts(origin):
    server = InParts()
    return server, origin(server).url("/film")


def test_what_is_exported_is_imported_elsewhere(gateway, origin, workspace):
    large = b"0123456789" * 60_000

    def served(seen):
        body = large if seen.target == "/large" else seen.target.encode()
        return reply(body, "200 OK", FRESH, "Vary: Accept-Language", f'ETag: "{len(body)}"')

    there = origin(served)
    first = gateway({})
    urls = [there.url(f"/{name}") for name in ("a", "b", "large")]
    for url in urls:
        for language in ("de", "en"):
            get(first, url, Accept_Language=language)
    archive = workspace / "archive"
    done = run_pinfold("cache", "export", str(archive), "--admin", "%s:%d" % first.admin)
    assert done.returncode == 0, done.stderr
    assert "6 responses exported" in done.stderr
    assert archive.stat().st_mode & 0o777 == 0o600
    second = gateway({})
    text = cache(second, "import", str(archive))
    assert text == "6 stored, 0 of another trust left out, 0 damaged, 0 not accepted\n"
    asked = len(there.requests)
    for url in urls:
        for language in ("de", "en"):
            response = get(second, url, Accept_Language=language)
            assert "hit" in response.cache_status
            assert response.body == (large if url.endswith("large") else url[-2:].encode())
    assert len(there.requests) == asked


def test_slices_are_exported_with_the_head_that_they_belong_to(gateway, there_in_parts, workspace):
    server, url = there_in_parts
    first = gateway({"hosts": [{"match": ["127.0.0.1"], "cache": {"slice": "64KiB"}}]})

    def part(running: Gateway, start: int, end: int):
        response = get(running, url, Range=f"bytes={start}-{end}")
        assert response.status == 206 and response.body == server.body[start:end + 1]
        return response

    part(first, 0, 200_000)
    part(first, 500_000, 510_000)
    # Parts of what was there before are of no use.
    other = server.body
    server.body, server.tag = other[::-1], '"two"'
    cache(first, "purge", url)
    part(first, 0, 100_000)
    part(first, 300_000, 300_010)
    archive = workspace / "archive"
    done = run_pinfold("cache", "export", str(archive), "--admin", "%s:%d" % first.admin)
    assert done.returncode == 0 and "1 response with 3 slices exported" in done.stderr
    second = gateway({"hosts": [{"match": ["127.0.0.1"], "cache": {"slice": "64KiB"}}]})
    text = cache(second, "import", str(archive))
    assert text == "1 stored with 3 slices, 0 of another trust left out, 0 damaged, 0 not accepted\n"
    asked = len(server.asked)
    for start, end in ((0, 100_000), (70_000, 80_000), (300_005, 300_010)):
        assert "hit" in part(second, start, end).cache_status
    assert len(server.asked) == asked
    # What is missing is fetched, under the same entity tag.
    whole = get(second, url)
    assert whole.body == server.body and whole.cache_status["fwd"] == "partial"
    assert all(seen.get("if-range") == '"two"' for seen in server.asked[asked:])
    again = cache(second, "import", str(archive))
    assert again.startswith("1 stored with 3 slices")
    assert get(second, url).body == server.body


def test_slices_of_another_trust_are_left_out_with_their_head(gateway, there_in_parts, workspace):
    _, url = there_in_parts
    first = gateway({})
    get(first, url, Range="bytes=0-9999")
    archive = workspace / "archive"
    cache(first, "export", str(archive))
    second = gateway({"access": {"destinations": {"deny": ["192.0.2.0/24"]}}})
    assert "0 stored, 2 of another trust left out" in cache(second, "import", str(archive))


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_a_soft_purge_has_made_stale_stays_so(gateway, origin, workspace, where):
    def served(seen):
        if seen.get("if-none-match"):
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "v"', length=False)
        return reply(b"x", "200 OK", FRESH, 'ETag: "v"')

    there = origin(served)
    first = gateway({})
    stale, fresh = there.url("/a"), there.url("/b")
    stored(first, stale, fresh)
    cache(first, "purge", stale, "--soft")
    if where == "disk":
        first.restart()
        first.wait_for_disk()
    archive = workspace / "archive"
    cache(first, "export", str(archive))
    second = gateway({})
    cache(second, "import", str(archive))
    value = json.loads(cache(second, "show", stale, "--json"))["variants"][0]
    assert value["freshFor"] == 0 and value["answer"] == "confirmed"
    second.restart()
    second.wait_for_disk()
    assert is_hit(second, fresh)
    response = get(second, stale)
    assert response.cache_status["fwd"] == "stale" and response.body == b"x"
    assert there.requests[-1].get("if-none-match") == '"v"'
    # It has been confirmed.
    assert is_hit(second, stale)


def test_an_archive_of_an_unknown_version_is_refused(running, workspace):
    archive = workspace / "archive"
    archive.write_bytes(b"PINFOLD-CACHE-3\n")
    done = run_pinfold("cache", "import", str(archive), "--admin", "%s:%d" % running.admin)
    assert done.returncode == 1 and "expected PINFOLD-CACHE-1 or PINFOLD-CACHE-2" in done.stderr


def test_what_was_obtained_under_another_trust_is_left_out(gateway, there, workspace):
    first = gateway({})
    get(first, there.url("/a"))
    archive = workspace / "archive"
    cache(first, "export", str(archive))
    second = gateway({"access": {"destinations": {"deny": ["192.0.2.0/24"]}}})
    assert "0 stored, 1 of another trust left out" in cache(second, "import", str(archive))
    assert not is_hit(second, there.url("/a"))


def test_a_damaged_file_stores_nothing_that_is_damaged(running, there, workspace):
    stored(running, there.url("/a"), there.url("/b"))
    archive = workspace / "archive"
    cache(running, "export", str(archive))
    whole = archive.read_bytes()
    changed = bytearray(whole)
    changed[whole.index(b"/a/a/a")] ^= 1
    (workspace / "changed").write_bytes(changed)
    assert "1 stored, 0 of another trust left out, 1 damaged" in cache(
        running, "import", str(workspace / "changed"), status=1)
    for name, content in ("cut", whole[:-20]), ("other", b"GIF89a" + whole), ("empty", b""):
        (workspace / name).write_bytes(content)
        assert cache(running, "import", str(workspace / name), status=1) == ""
    assert run_pinfold("cache", "import", str(workspace / "absent")).returncode == 1


def test_an_export_goes_through_a_pipe(running, there):
    stored(running, there.url("/a"))
    address = "%s:%d" % running.admin
    done = subprocess.run(
        f"{BINARY} cache export - --admin {address} | {BINARY} cache import - --admin {address}",
        shell=True, capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("1 stored"), done.stderr


def test_pieces_come_in_order(running, there):
    stored(running, there.url("/a"))
    assert api(running, "/api/v1/cache/export?session=x&piece=1").status == 409
    assert api(running, "/api/v1/cache/export?session=x&piece=0").status == 200
    assert api(running, "/api/v1/cache/export?session=x&piece=0").status == 409
    for number in range(3):
        assert api(running, f"/api/v1/cache/export?session=y{number}&piece=0").status == 200
    assert api(running, "/api/v1/cache/export?session=z&piece=0").status == 503
