"""Every token that a command prints is one that `pinfold reasons` explains."""

from __future__ import annotations

import pytest
from support.chains import HOST, ask, chain
from support.gateway import run_pinfold
from support.origin import reply
from test_trust_rules import CLAUSES


def is_explained(token: str) -> bool:
    done = run_pinfold("reasons", token)
    return done.returncode == 0 and done.stdout.startswith(f"{token}: ")


def test_trust_prints_tokens_that_reasons_explains():
    plain = chain(lambda _: None)
    questions = [chain(violation).question() for violation, _, _ in CLAUSES.values()] + [
        plain.question(), plain.question(host="other.test"), plain.question(roots=[]),
        plain.question(at="2001-01-01T00:00:00Z"), plain.question(at="2901-01-01T00:00:00Z"),
        plain.question(pins=["sha256/" + "A" * 43 + "="]), plain.question(mode="publicKey"),
        plain.question(allowInvalidCertificates=True), {"chain": [], "host": HOST},
    ]
    tokens = {one["reason"] for one in ask(questions)}
    tokens |= {one["reason"] for one in ask([{"nothing": "asked"}], code=2)}
    assert {"trusted", "bad-question", "tls-host-mismatch", "tls-no-pin-matches"} <= tokens
    assert [token for token in sorted(tokens) if not is_explained(token)] == []


def test_trust_refuses_a_host_that_is_pinned_elsewhere_by_the_gateways_token(pki, workspace):
    leaf = pki.intermediate.issue("trust.test")
    config = workspace / "pinned.yaml"
    config.write_text(f"""
hosts:
  - {{ match: ["trust.test:443"], pinsets: [p], upgrade: https }}
  - {{ match: ["trust.test"] }}
pinsets: {{ p: {{ mode: publicKey, pins: ["{leaf.pin}"] }} }}
tls: {{ roots: ["{pki.root.pem_file}"] }}
""")
    done = run_pinfold("trust", "--config", str(config), "--chain", str(leaf.chain_file()),
                       "--host", "trust.test", "--port", "8443")
    token = done.stdout.split(": ")[1]
    assert token == "pinned-port-refused" and is_explained(token)


@pytest.mark.parametrize("arguments, token", [
    (["http://127.0.0.1:1/"], "connection-refused"),
    (["http://nosuch.invalid/"], "dns-nxdomain"),
    (["http:///"], "invalidRequest"),
    (["http://127.0.0.1:1/", "--proxy", "nonsense://"], None),
    (["{loop}", "--max-redirects", "2"], "tooManyRedirects"),
])
def test_the_clients_commands_print_tokens_that_reasons_explains(origin, arguments, token):
    there = origin(lambda _: reply(b"", "302 Found", "Location: /again"))
    done = run_pinfold(
        "get", *(one.format(loop=f"http://127.0.0.1:{there.port}") for one in arguments))
    assert done.returncode not in (0, 64), done.stdout + done.stderr
    words = done.stderr.split(": ")
    found = next((one for one in words if one == token), None) or words[1]
    assert token in (None, found), done.stderr
    assert is_explained(found), done.stderr


def test_reasons_without_a_token_lists_those_of_trust_and_of_the_client():
    listed = {line.split()[0] for line in run_pinfold("reasons").stdout.splitlines()
              if line.startswith("  ")}
    assert {"trusted", "bad-question", "tooManyRedirects", "server-trust-refused", "queue-timeout",
            "tls-self-signed", "upstream-closed"} <= listed


@pytest.mark.parametrize("token", ["server-trust-refused", "queue-timeout"])
def test_tokens_that_only_the_library_gives_are_explained(token):
    assert is_explained(token)
