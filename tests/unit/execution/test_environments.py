import pytest
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.docker import COMPOSE_NO_NETWORK_PATH
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from orbit.errors import SetupError, UsageError
from orbit.execution import _environments, _hosted, agents
from orbit.execution._environments import DockerChoice, LocalChoice, choose_environment
from orbit.execution.agents import AgentSpec
from orbit.execution.docker import OrbitDockerEnvironment, OrbitPodmanEnvironment
from orbit.execution.trials import LimitsRecord
from orbit.frameworks import find_framework

NO_NETWORK = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)


PODMAN = OrbitPodmanEnvironment


def container(tmp_path, policy=None, phases=(), kind=OrbitDockerEnvironment, **options):
    return kind(
        environment_dir=tmp_path,
        environment_name="task",
        session_id="trial__env",
        trial_paths=TrialPaths(tmp_path),
        task_env_config=EnvironmentConfig(docker_image="image:1", memory_mb=512),
        network_policy=policy,
        phase_network_policies=list(phases),
        run_id="r1",
        **options,
    )


def test_a_container_that_needs_no_network_has_none_and_few_rights(tmp_path):
    environment = container(tmp_path, NO_NETWORK, [NO_NETWORK])
    assert environment.capabilities.disable_internet
    assert COMPOSE_NO_NETWORK_PATH in environment._docker_compose_paths
    main = environment.overlay()["services"]["main"]
    assert main["cap_drop"] == ["ALL"]
    assert main["security_opt"] == ["no-new-privileges:true"]
    assert main["memswap_limit"] == "512m"
    assert main["labels"]["orbit.run"] == "r1"


def test_a_container_with_network_keeps_it_and_is_labelled(tmp_path):
    environment = container(tmp_path)
    assert COMPOSE_NO_NETWORK_PATH not in environment._docker_compose_paths
    overlay = environment.overlay()
    assert "cap_drop" not in overlay["services"]["main"]
    assert overlay["networks"]["default"]["labels"]["orbit.run"] == "r1"
    host = container(tmp_path, agent_network="host").overlay()
    assert host["services"]["main"]["network_mode"] == "host"


def test_a_policy_that_would_need_the_sidecar_is_not_silently_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(OrbitDockerEnvironment, "_egress_control_kernel_support", classmethod(lambda cls: False))
    with pytest.raises(ValueError, match="allowlist"):
        container(tmp_path, NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["api.example.org"]))
    with pytest.raises(ValueError, match="network policy"):
        container(tmp_path, NO_NETWORK, [NetworkPolicy()])


@pytest.fixture
def docker(monkeypatch):
    """An image of every framework, and no way to confine an agent."""
    image = type("Image", (), {"name": "image:1", "image_id": "sha256:1", "agents": {"codex": "0.171.0"}})
    monkeypatch.setattr("orbit.images.check_image", lambda framework, program: image)
    monkeypatch.setattr(OrbitDockerEnvironment, "_egress_control_kernel_support", classmethod(lambda cls: False))
    return DockerChoice()


LIMITS = LimitsRecord(cpus=4, memory_mb=9216, storage_mb=100, run_timeout_sec=5, verification_timeout_sec=50)


def test_a_container_is_staged_with_the_limits_of_its_cell(docker):
    place = docker.for_cell(find_framework("tensorcircuit"), AgentSpec("reference"), LIMITS)
    assert (place.spec.cpus, place.spec.memory_mb, place.spec.storage_mb) == (4, 9216, 100)
    assert place.spec.verifier_timeout_sec == 50
    assert place.spec.can_enforce_no_network
    assert place.spec.allowed_hosts == ()
    assert place.warnings == ("environment docker does not limit disk use to 100 MiB",)


def test_the_engine_is_asked_what_it_has(monkeypatch, tmp_path):
    monkeypatch.setattr("orbit.images.ask_engine", lambda *arguments, program: f"4 {10 * 2**30} {tmp_path}\n")
    _environments._engine_capacity.cache_clear()
    found = DockerChoice().capacity()
    _environments._engine_capacity.cache_clear()
    assert (found.cpus, found.memory_mb) == (4, 9216)
    assert found.storage_mb > 0


def test_an_image_with_another_version_of_the_agent_is_refused(docker):
    framework = find_framework("pennylane")
    docker.for_cell(framework, AgentSpec("codex", version="0.171.0"), LIMITS)
    docker.for_cell(framework, AgentSpec("goose", version="1.2"), LIMITS)
    for agent, there in (("codex", "0.171.0"), ("claude-code", "none")):
        with pytest.raises(SetupError, match=f"has {agent} {there}.*orbit images build pennylane") as caught:
            docker.for_cell(framework, AgentSpec(agent, version="0.170.0"), LIMITS)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("agent", "hosts", "network"),
    [
        (AgentSpec("codex"), ("api.openai.com",), "engine"),
        (AgentSpec("claude-code", base_url="https://proxy.example.org/v1"), ("proxy.example.org",), "engine"),
        (AgentSpec("codex", base_url="http://127.0.0.1:8000/v1"), ("127.0.0.1",), "host"),
        (AgentSpec("goose"), ("the model endpoint",), "engine"),
    ],
)
def test_an_agent_reaches_its_endpoint(docker, agent, hosts, network):
    place = docker.for_cell(find_framework("tensorcircuit"), agent, LIMITS)
    assert place.spec.allowed_hosts == hosts
    assert not place.spec.can_enforce_allowlist
    assert docker.to_harbor("r1", agent).kwargs == {"run_id": "r1", "agent_network": network}


def test_preinstalled_agents_are_not_installed_and_do_not_search_the_web(monkeypatch):
    monkeypatch.setenv("MY_KEY", "x")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    config = AgentSpec("codex", model="openai/gpt-5.5", effort="high", key_variable="MY_KEY").to_harbor()
    assert config.import_path == "orbit.execution.installed:OrbitCodex"
    assert config.kwargs == {"skip_install": True, "disable_web_search": True, "reasoning_effort": "high"}
    assert config.model_api_key_name == "MY_KEY"
    goose = AgentSpec("goose", version="1.2", options={"max_turns": 3}).to_harbor()
    assert (goose.name, goose.kwargs) == ("goose", {"version": "1.2", "max_turns": 3})
    with pytest.raises(UsageError, match="no-such-agent"):
        AgentSpec("no-such-agent").to_harbor()


def test_what_an_agent_lacks_is_said_before_it_starts(monkeypatch):
    for variable in agents._KEY_VARIABLES["codex"]:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match="no model"):
        AgentSpec("codex").check()
    with pytest.raises(SetupError, match="OPENAI_API_KEY is not set"):
        AgentSpec("codex", model="openai/m").check()
    with pytest.raises(SetupError, match="MY_KEY is not set"):
        AgentSpec("claude-code", model="anthropic/m", key_variable="MY_KEY").check()
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    AgentSpec("codex", model="openai/m").check()
    with pytest.raises(UsageError, match="Unknown option 'bogus'") as caught:
        AgentSpec("codex", model="openai/m", options={"bogus": 1}).to_harbor()
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="--key-variable"):
        AgentSpec("codex", model="openai/m", options={"web_search": "canary"}).check()
    with pytest.raises(UsageError, match="leave --agent-version out"):
        AgentSpec("reference", version="1").check()
    with pytest.raises(UsageError, match="leave --agent-option out"):
        AgentSpec("file:mine.py", options={"max_turns": 3}).check()


def test_local_takes_the_network_only_from_agents_that_need_none(monkeypatch):
    monkeypatch.setattr(_environments, "bubblewrap", lambda: "/usr/bin/bwrap")
    framework = find_framework("tensorcircuit")
    choice = choose_environment("local", allow_unsandboxed=True)
    assert isinstance(choice, LocalChoice)
    assert choice.for_cell(framework, AgentSpec("reference"), LIMITS).spec.can_enforce_no_network
    assert not choice.for_cell(framework, AgentSpec("codex"), LIMITS).spec.can_enforce_no_network


def test_podman_is_docker_by_another_program(docker, monkeypatch):
    choice = choose_environment("podman")
    place = choice.for_cell(find_framework("tensorcircuit"), AgentSpec("reference"), LIMITS)
    assert place.spec.kind == "podman"
    assert choice.to_harbor("r1", AgentSpec("reference")).import_path == f"{PODMAN.__module__}:{PODMAN.__name__}"
    assert PODMAN.type() == "podman"
    monkeypatch.setattr("orbit.images._engine.shutil.which", lambda name: None)
    with pytest.raises(SetupError, match="podman: no such command"):
        choice.capacity()


def test_podman_needs_a_compose_program(monkeypatch):
    def refuse(kwargs=None):
        raise SystemExit("No Podman compose frontend found.\nInstall one.")

    monkeypatch.setattr(PODMAN, "preflight", refuse)
    with pytest.raises(SetupError, match=r"compose frontend found\. Install one") as caught:
        choose_environment("podman").prepare("r1", [], print)
    assert "\n" not in str(caught.value)


def test_an_overlay_is_the_same_for_podman(tmp_path):
    environment = container(tmp_path, NO_NETWORK, [NO_NETWORK], kind=PODMAN)
    assert environment.capabilities.disable_internet
    assert environment.overlay() == container(tmp_path, NO_NETWORK, [NO_NETWORK]).overlay()


@pytest.mark.parametrize("name", ["e2b", "modal", "daytona"])
def test_an_environment_that_lacks_a_package_or_a_credential_is_one_line(name, monkeypatch):
    for variable in ("E2B_API_KEY", "MODAL_TOKEN_ID", "DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    choice = choose_environment(name)
    for missing, reason in ((["some-sdk"], f"run pip install 'harbor[{name}]'"), ([], "")):
        monkeypatch.setattr(_hosted, "missing_packages", lambda *_, missing=missing: missing)
        with pytest.raises(SetupError) as caught:
            choice.for_cell(find_framework("tensorcircuit"), AgentSpec("reference"), LIMITS)
        assert str(caught.value).startswith(f"environment {name}: ")
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)


def test_packages_of_an_extra_are_looked_up():
    requirements = ["nowhere-to-be-found>=1; extra == 'a'", 'pytest ; extra == "a"', "neither; extra == 'b'"]
    assert _hosted.missing_packages("a", requirements) == ["nowhere-to-be-found"]
    assert _hosted.missing_packages("c", requirements) == []


def test_a_hosted_environment_gets_our_image_and_says_what_it_cannot_do(monkeypatch):
    class Elsewhere(OrbitDockerEnvironment):
        @property
        def capabilities(self):
            return EnvironmentCapabilities(disable_internet=True)

        @classmethod
        def resource_capabilities(cls):
            return EnvironmentResourceCapabilities(memory_limit=True)

    monkeypatch.setattr(_hosted, "_environment_class", lambda name: Elsewhere)
    choice = choose_environment("daytona", image_prefix="registry.example.org/team/")
    assert choice.to_harbor("r1", AgentSpec("reference")).type == "daytona"
    assert choice.capacity().cpus is None
    place = choice.for_cell(find_framework("pennylane"), AgentSpec("codex", model="openai/m"), LIMITS)
    assert place.spec.image.startswith("registry.example.org/team/orbit-pennylane:")
    assert place.spec.can_enforce_no_network
    assert not place.spec.can_enforce_allowlist
    told = " ".join(place.warnings)
    assert "4 cores" in told
    assert "disk use" in told
    assert "of memory" not in told
    with pytest.raises(SetupError, match="push the image"):
        choice.for_cell(find_framework("pennylane"), AgentSpec("codex", version="0.0.1"), LIMITS)


def test_what_an_environment_can_enforce_is_not_guessed():
    class Asks(OrbitDockerEnvironment):
        @property
        def capabilities(self):
            return EnvironmentCapabilities(disable_internet=not self._compose_mode, network_allowlist=self.unknown)

    assert not _hosted._capabilities(Asks).disable_internet


def test_an_image_prefix_is_for_other_machines():
    with pytest.raises(UsageError, match="--image-prefix"):
        choose_environment("docker", image_prefix="registry.example.org")
    with pytest.raises(UsageError, match=r"not one of local, docker, podman, .*daytona"):
        choose_environment("cloud9")
