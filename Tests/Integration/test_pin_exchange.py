"""`pinfold pin import` and `pinfold pin export`: pins to and from other programs."""

from __future__ import annotations

import plistlib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from support.gateway import besides_open_hosts, run_pinfold
from support.origin import reply
from support.wire import request

PINS = ["sha256/" + letter * 42 + "A=" for letter in "AB"]
HASHES = [pin.removeprefix("sha256/") for pin in PINS]


def imported(*arguments) -> dict:
    done = run_pinfold("pin", "import", *map(str, arguments))
    assert (done.returncode, done.stderr) == (0, "")
    return yaml.safe_load(done.stdout)


def written(folder: Path, *arguments) -> Path:
    """What was imported, as a configuration's file that checks without a warning."""
    done = run_pinfold("pin", "import", *map(str, arguments))
    assert (done.returncode, done.stderr) == (0, "")
    file = folder / "imported.yaml"
    file.write_text(done.stdout)
    checked = run_pinfold("check", "--config", str(file))
    assert (checked.returncode, besides_open_hosts(checked.stderr)) == (0, "")
    return file


def trustkit(file: Path, form: plistlib.PlistFormat) -> None:
    domains = {"api.example.com": {"TSKPublicKeyHashes": HASHES, "TSKIncludeSubdomains": True}}
    file.write_bytes(plistlib.dumps({"TSKConfiguration": {"TSKPinnedDomains": domains}}, fmt=form))


@pytest.mark.parametrize("form", [plistlib.FMT_XML, plistlib.FMT_BINARY])
def test_an_info_plist_is_read_and_written(tmp_path, form):
    plist = tmp_path / "Info.plist"
    trustkit(plist, form)
    file = written(tmp_path, plist)
    config = yaml.safe_load(file.read_text())
    assert config["hosts"][0]["match"] == ["**.api.example.com"]
    assert config["pinsets"]["api.example.com"] == {"mode": "publicKey", "pins": PINS}
    done = run_pinfold("pin", "export", "--config", str(file), "--format", "trustkit")
    assert (done.returncode, done.stderr) == (0, "")
    domains = plistlib.loads(done.stdout.encode())["TSKConfiguration"]["TSKPinnedDomains"]
    assert domains == {"api.example.com": {
        "TSKPublicKeyHashes": HASHES, "TSKIncludeSubdomains": True, "TSKEnforcePinning": True}}


def test_what_android_gets_is_xml_and_reads_the_same(tmp_path):
    plist = tmp_path / "Info.plist"
    trustkit(plist, plistlib.FMT_XML)
    file = written(tmp_path, plist)
    done = run_pinfold("pin", "export", "--config", str(file), "--format", "android")
    tree = ElementTree.fromstring(done.stdout)
    domain = tree.find("domain-config/domain")
    assert domain is not None
    assert (domain.text, domain.get("includeSubdomains")) == ("api.example.com", "true")
    assert [pin.text for pin in tree.iter("pin")] == HASHES
    again = tmp_path / "network_security_config.xml"
    again.write_text(done.stdout)
    assert imported(again) == yaml.safe_load(file.read_text())


def test_okhttp_and_curl_go_there_and_back(tmp_path):
    source = tmp_path / "Pins.kt"
    source.write_text(f'.add("api.example.com", "{PINS[0]}", "{PINS[1]}")')
    file = written(tmp_path, source)
    for form in ["okhttp", "curl"]:
        done = run_pinfold("pin", "export", "--config", str(file), "--format", form)
        assert done.returncode == 0
        back = tmp_path / f"{form}.txt"
        back.write_text(done.stdout)
        assert imported(back) == yaml.safe_load(file.read_text())


def test_a_string_of_curls_is_read_as_it_stands():
    config = imported(f"sha256//{HASHES[0]};sha256//{HASHES[1]}", "--host", "*.example.com")
    assert config["hosts"][0]["match"] == ["*.example.com"]
    assert list(config["pinsets"].values())[0]["pins"] == PINS


@pytest.mark.parametrize("whole", [False, True])
def test_a_folder_of_certificates_pins_a_server(gateway, origin, pki, tmp_path, whole):
    leaf = pki.intermediate.issue("127.0.0.1")
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "api.cer").write_bytes(leaf.der_file.read_bytes())
    (folder / "ca.cer").write_bytes(pki.root.der_file.read_bytes())
    (folder / "README.txt").write_text("not a certificate")
    file = written(
        tmp_path, folder, "--host", "127.0.0.1", *(["--certificates"] if whole else []))
    config = yaml.safe_load(file.read_text())
    mode = "certificate" if whole else "publicKey"
    assert config["pinsets"]["127.0.0.1"]["mode"] == mode
    config["hosts"][0]["tls"] = {"roots": [str(pki.root.pem_file)]}
    running = gateway(config)
    there = origin(lambda _: reply(b"genuine"), tls=leaf.server_context())
    answer = running.ask(request(f"http://127.0.0.1:{there.port}/", Connection="close"))
    assert (answer.status, answer.body) == (200, b"genuine")
    output = tmp_path / "exported"
    done = run_pinfold(
        "pin", "export", "--config", str(file), "--format", "cer", "--output", str(output))
    assert (done.returncode, done.stderr) == (0, "")
    assert [one.read_bytes() for one in sorted(output.iterdir())] == [
        (folder / name).read_bytes() for name in ["api.cer", "ca.cer"]]
    again = run_pinfold(
        "pin", "export", "--config", str(file), "--format", "cer", "--output", str(output))
    assert again.returncode == 1 and "exists" in again.stderr.lower()


@pytest.mark.parametrize(("content", "words"), [
    ("<network-security-config><domain-config>", ["line 1", "does not end"]),
    ("<plist><dict/></plist>", ["TSKPinnedDomains", "expected"]),
    ('.add("a.test", "sha256/short")', ["line 1", "5 characters", "expected 44"]),
    ("curl --pinnedpubkey sha256//short https://a.test", ["line 1", "5 characters"]),
    ("hello", ["--host"]),
])
def test_bad_input_is_reported_with_its_file_and_place(tmp_path, content, words):
    file = tmp_path / "input"
    file.write_text(content)
    done = run_pinfold("pin", "import", str(file))
    assert done.returncode == 1
    assert done.stdout == ""
    assert str(file) in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_what_another_format_cannot_express_is_reported(tmp_path):
    file = tmp_path / "pinfold.yaml"
    file.write_text(yaml.safe_dump({
        "hosts": [{"match": ["*.example.com"], "upgrade": "https", "pinsets": ["p"]}],
        "pinsets": {"p": {"mode": "publicKey", "pins": PINS, "enforce": False}}}))
    done = run_pinfold("pin", "export", "--config", str(file), "--format", "trustkit")
    assert done.returncode == 0
    assert done.stderr.startswith("Warning: ") and "all names below it" in done.stderr
    done = run_pinfold("pin", "export", "--config", str(file), "--format", "android")
    assert (done.returncode, done.stdout) == (1, "")
    assert "only reports" in done.stderr and "expected" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["--format", "cer"], ["--format", "curl", "--output", "x"], ["--format", "none"], []])
def test_wrong_usage_of_export_is_an_error(arguments):
    assert run_pinfold("pin", "export", "--config", "x.yaml", *arguments).returncode == 64
