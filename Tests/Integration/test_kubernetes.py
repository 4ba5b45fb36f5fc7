"""The manifests for Kubernetes say of the gateway what is so."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.gateway import ROOT, run_pinfold

FILES = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))


def documents(file: Path) -> dict[str, dict]:
    return {one["kind"]: one for one in yaml.safe_load_all(file.read_text())}


def pod(file: Path) -> dict:
    all_of = documents(file)
    return all_of["Deployment"]["spec"]["template"]["spec"] if "Deployment" in all_of else (
        all_of["Pod"]["spec"])


def container(file: Path) -> dict:
    spec = pod(file)
    return next(one for one in spec.get("initContainers", []) + spec["containers"]
                if one["name"] == "pinfold")


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text[:-1])


@pytest.fixture(params=FILES, ids=[file.stem for file in FILES])
def manifest(request):
    return request.param


@pytest.fixture
def configuration(manifest, tmp_path):
    text = documents(manifest)["ConfigMap"]["data"]["pinfold.yaml"]
    file = tmp_path / "pinfold.yaml"
    file.write_text(text)
    return file


def test_there_are_two():
    assert [file.stem for file in FILES] == ["deployment", "sidecar"]


def test_the_configuration_is_valid(configuration):
    done = run_pinfold("check", "--config", str(configuration))
    assert done.returncode == 0, done.stderr
    # The path is of the container.
    assert not [line for line in done.stderr.splitlines() if "/var/lib/pinfold" not in line]
    assert yaml.safe_load(configuration.read_text())["watch"] is True


def test_a_changed_map_is_seen(manifest):
    mounts = {one["mountPath"]: one for one in container(manifest)["volumeMounts"]}
    assert "subPath" not in mounts["/etc/pinfold"]


def test_it_needs_no_privileges(manifest):
    context = pod(manifest)["securityContext"] | container(manifest)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 65532
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_it_has_time_to_drain(manifest, configuration):
    times = yaml.safe_load(configuration.read_text()).get("timeouts", {})
    needed = seconds(times.get("drainDelay", "0s")) + seconds(times.get("grace", "30s"))
    assert pod(manifest)["terminationGracePeriodSeconds"] >= needed + 10


def test_what_it_writes_is_a_volume(manifest, configuration):
    cache = yaml.safe_load(configuration.read_text())["cache"]
    mounts = {one["mountPath"] for one in container(manifest)["volumeMounts"]}
    assert cache.get("disk") == 0 or cache["path"] in mounts


def test_the_ports_are_those_of_the_configuration():
    """Of the deployment: nobody outside of its pod reaches the sidecar."""
    file = ROOT / "deploy/kubernetes/deployment.yaml"
    values = yaml.safe_load(documents(file)["ConfigMap"]["data"]["pinfold.yaml"])
    ports = {one["name"]: one["containerPort"] for one in container(file)["ports"]}
    assert ports["proxy"] == int(values["listeners"][0]["address"].rpartition(":")[2])
    assert ports["admin"] == int(values["admin"]["address"].rpartition(":")[2])
    service = documents(file)["Service"]["spec"]
    assert service["ports"][0]["targetPort"] == "proxy"
    assert service["selector"].items() <= (
        documents(file)["Deployment"]["spec"]["template"]["metadata"]["labels"].items())
    assert container(file)["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"}
    assert container(file)["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
