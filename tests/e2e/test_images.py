"""The real images: what an agent finds in them, and what it cannot reach.

The images must have been built (`orbit images build tensorcircuit pennylane`); without them, or without an engine,
these tests skip, which fails in CI.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

import pytest

from orbit.errors import SetupError
from orbit.frameworks import find_framework
from orbit.images import (
    REFERENCE_FRAMEWORK,
    ImageInfo,
    agent_versions,
    check_image,
    image_name,
    list_images,
    reference_python,
)

pytestmark = pytest.mark.e2e

PROGRAMS = {
    "tensorcircuit": (
        "import tensorcircuit as tc; tc.set_backend('jax'); tc.set_contractor('omeco')\n"
        "c = tc.Circuit(2); c.h(0); c.cx(0, 1); print(round(float(c.expectation_ps(z=[0, 1]).real), 5))"
    ),
    "pennylane": (
        "import pennylane as qml\n"
        "@qml.qnode(qml.device('default.qubit', wires=2))\n"
        "def bell():\n"
        "    qml.Hadamard(0); qml.CNOT([0, 1]); return qml.expval(qml.Z(0) @ qml.Z(1))\n"
        "print(round(float(bell()), 5))"
    ),
}
VERSIONS = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}))"
)


@dataclass(frozen=True)
class Image:
    """A built image and a way to run something in it, without network."""

    info: ImageInfo

    def run(self, *command: str, user: str = "agent") -> subprocess.CompletedProcess[str]:
        options = ["--rm", "--network", "none", "--user", user, "--label", "orbit.test=images"]
        return subprocess.run(
            ["docker", "run", *options, self.info.name, *command],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def output(self, *command: str, user: str = "agent") -> str:
        done = self.run(*command, user=user)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(params=sorted(PROGRAMS))
def image(request):
    try:
        return Image(check_image(request.param))
    except SetupError as error:
        pytest.skip(str(error))


def test_the_framework_runs_without_network_as_an_unprivileged_user(image):
    assert image.output("python", "-c", PROGRAMS[image.info.framework]) == "1.0"


def test_the_packages_are_those_of_the_lock(image):
    installed = json.loads(image.output("python", "-c", VERSIONS))
    pinned = find_framework(image.info.framework).pinned_versions
    assert {name: installed.get(name.replace("_", "-")) for name in pinned} == pinned


def test_the_agents_are_there_at_their_pinned_versions(image):
    pins = agent_versions()
    assert image.output("codex", "--version") == f"codex-cli {pins['codex']}"
    assert image.output("claude", "--version").split()[0] == pins["claude-code"]
    assert image.info.agents == pins


def test_the_system_programs_are_there(image):
    programs = ["bash", "cc", "git", "node", "rg", "ps"]
    assert len(image.output("bash", "-c", f"command -v {' '.join(programs)}").splitlines()) == len(programs)


def test_the_agent_can_write_its_artifact_and_little_else(image):
    assert image.output("id", "-u") == "1000"
    image.output("bash", "-c", "touch /app/solution.py")
    for place in ("/usr/local/bin", "/opt/orbit", "/etc", "/logs/verifier"):
        assert image.run("touch", f"{place}/x").returncode != 0, place


def test_the_reference_environment_serves_its_user_and_nobody_else(image):
    reference = find_framework(REFERENCE_FRAMEWORK)
    python = reference_python()
    assert image.output(python, "-c", PROGRAMS[REFERENCE_FRAMEWORK], user="reference") == "1.0"
    installed = json.loads(image.output(python, "-c", VERSIONS, user="reference"))
    assert installed[reference.package] == reference.version
    for command in (
        ["ls", "/opt/orbit/reference"],
        [python, "-c", "1"],
        ["cat", "/opt/orbit/reference/python/bin/pip"],
    ):
        done = image.run(*command)
        assert done.returncode != 0
        assert "ermission denied" in done.stderr


def test_neither_user_can_read_the_other_ones_home(image):
    assert image.run("ls", "/home/reference").returncode != 0
    assert image.run("ls", "/home/agent", user="reference").returncode != 0


def test_the_build_left_no_secret_and_no_certificate_setting(image):
    assert image.run("ls", "/run/secrets/ca_bundle").returncode != 0
    environment = image.output("env")
    assert not [line for line in environment.splitlines() if "CERT" in line or "CA_" in line or "PROXY" in line.upper()]


def test_a_changed_lock_makes_the_image_unusable(image, tmp_path):
    framework = find_framework(image.info.framework)
    (tmp_path / "requirements.txt").write_text(framework.requirements.read_text() + "# changed\n")
    changed = framework.model_copy(update={"directory": tmp_path})
    changed.__dict__.pop("requirements_digest", None)
    with pytest.raises(SetupError, match=f"run `orbit images build {framework.name}`"):
        check_image(changed)


def test_the_list_shows_it_as_current(image):
    found = {info.name: info for info in list_images()}
    assert found[image_name(find_framework(image.info.framework))].current
