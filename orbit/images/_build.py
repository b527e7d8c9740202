"""Building an image: stage a small context, hand it to BuildKit with arguments and labels."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orbit.errors import UsageError
from orbit.frameworks import Framework, all_frameworks, find_framework
from orbit.images import _base, _engine, _recipe
from orbit.images._inspect import ImageInfo, check_image, image_name
from orbit.paths import data_root

_STEP = re.compile(r"^(#\d+) (\[(?!internal)[^\]]+\] .*|exporting .*)$")
_MOUNT = re.compile(r"--mount=\S+")
_STEP_WIDTH = 110
_CONTEXT_FILES = ("Dockerfile", "with-ca-bundle")


@dataclass(frozen=True)
class BuildOptions:
    """How to build.

    Attributes:
        base_image: image with the framework's Python; the slim official one when None.
        reference_base_image: image with the reference's Python; `base_image` when the versions agree, else the slim
            official one.
        ca_bundle: certificates that pip, npm and apt must trust inside the build, for a proxy with its own certificate.
        network: network of the build steps, such as `host`.
        find_links: directory of wheels that pip may take beside the package index.
        offline_base: make the base images with debootstrap and this machine's interpreters, for a machine that reaches
            package registries but no image registry.
        no_cache: build every layer anew.
        verbose: report every line of the build instead of its steps.
    """

    base_image: str | None = None
    reference_base_image: str | None = None
    ca_bundle: Path | None = None
    network: str | None = None
    find_links: Path | None = None
    offline_base: bool = False
    no_cache: bool = False
    verbose: bool = False


def build_image(
    framework: Framework | str, options: BuildOptions | None = None, *, progress: _engine.Progress | None = None
) -> ImageInfo:
    """Build the image of one framework and return it checked.

    Args:
        framework: the framework or its name.
        options: how to build; the defaults need an image registry.
        progress: gets one line of text at a time.

    Raises:
        UsageError: an option names a file that is not there, or two options contradict each other.
        SetupError: no engine, no buildx, or the build failed; the text holds the line that says why.
    """
    framework = find_framework(framework) if isinstance(framework, str) else framework
    options = options or BuildOptions()
    report = progress or (lambda line: None)
    _check_options(options)
    _engine.ask("buildx", "version")
    reference = find_framework(_recipe.REFERENCE_FRAMEWORK)
    base, reference_base = _bases(framework, reference, options, report)
    with tempfile.TemporaryDirectory(prefix="orbit-image-") as directory:
        context = Path(directory)
        _stage_context(context, framework, reference, options)
        command = build_command(context, framework, reference, base, reference_base, options)
        report(f"building {image_name(framework)} from {base}")
        _engine.stream(command, report if options.verbose else _steps_only(report))
    return check_image(framework)


def build_images(
    names: Sequence[str], options: BuildOptions | None = None, *, progress: _engine.Progress | None = None
) -> list[ImageInfo]:
    """Build the images of the named frameworks, or of all of them, one after the other.

    Raises:
        UsageError: a framework is unknown, or an option is wrong.
        SetupError: no engine, no buildx, or a build failed.
    """
    frameworks = [find_framework(name) for name in names] or all_frameworks()
    return [build_image(framework, options, progress=progress) for framework in frameworks]


def build_command(
    context: Path, framework: Framework, reference: Framework, base: str, reference_base: str, options: BuildOptions
) -> list[str]:
    """The `docker buildx build` command line."""
    agents = _recipe.agent_versions()
    arguments = {
        "BASE_IMAGE": base,
        "REFERENCE_BASE_IMAGE": reference_base,
        "PYTHON": framework.python,
        "REFERENCE_PYTHON": reference.python,
        "CODEX_VERSION": agents["codex"],
        "CLAUDE_CODE_VERSION": agents["claude-code"],
    }
    labels = {
        _recipe.FRAMEWORK_LABEL: framework.name,
        _recipe.VERSION_LABEL: framework.version,
        _recipe.PYTHON_LABEL: framework.python,
        _recipe.REQUIREMENTS_LABEL: framework.requirements_digest,
        _recipe.REFERENCE_LABEL: reference.requirements_digest,
        _recipe.BASE_LABEL: base,
    } | {f"{_recipe.AGENT_LABEL_PREFIX}{name}": version for name, version in agents.items()}
    command = [_engine.docker_program(), "buildx", "build", "--load", "--provenance=false", "--progress=plain"]
    command += ["--tag", image_name(framework)]
    for key, value in arguments.items():
        command += ["--build-arg", f"{key}={value}"]
    for key, value in labels.items():
        command += ["--label", f"{key}={value}"]
    if options.ca_bundle is not None:
        command += ["--secret", f"id=ca_bundle,src={options.ca_bundle.resolve()}"]
    if options.network is not None:
        command += ["--network", options.network]
    if options.no_cache:
        command.append("--no-cache")
    return [*command, str(context)]


def _steps_only(report: _engine.Progress) -> _engine.Progress:
    """Pass on each step of a build when it begins, without its output."""
    seen: set[str] = set()

    def pass_on(line: str) -> None:
        match = _STEP.match(line)
        if match and match[1] not in seen:
            seen.add(match[1])
            text = " ".join(_MOUNT.sub("", match[2]).split())
            report(text if len(text) <= _STEP_WIDTH else f"{text[: _STEP_WIDTH - 1]}…")

    return pass_on


def _check_options(options: BuildOptions) -> None:
    if options.offline_base and options.base_image is not None:
        raise UsageError(f"--base-image {options.base_image}: contradicts --offline-base; give one of the two")
    if options.ca_bundle is not None and not options.ca_bundle.is_file():
        raise UsageError(f"--ca-bundle {options.ca_bundle}: no such file; give a PEM bundle")
    if options.find_links is not None and not options.find_links.is_dir():
        raise UsageError(f"--find-links {options.find_links}: no such directory; give one that holds wheels")


def _bases(
    framework: Framework, reference: Framework, options: BuildOptions, report: _engine.Progress
) -> tuple[str, str]:
    """Base image of the framework and of the reference's environment."""
    if options.offline_base:
        versions = dict.fromkeys((framework.python, reference.python))
        bases = {version: _base.build_offline_base(version, progress=report) for version in versions}
        return bases[framework.python], bases[reference.python]
    base = options.base_image or f"python:{framework.python}-slim"
    if options.reference_base_image is not None:
        return base, options.reference_base_image
    return base, base if framework.python == reference.python else f"python:{reference.python}-slim"


def _stage_context(context: Path, framework: Framework, reference: Framework, options: BuildOptions) -> None:
    source = data_root() / "images"
    for name in _CONTEXT_FILES:
        shutil.copyfile(source / name, context / name)
    shutil.copyfile(framework.requirements, context / "requirements.txt")
    shutil.copyfile(reference.requirements, context / "reference-requirements.txt")
    wheels = context / "wheels"
    wheels.mkdir()
    if options.find_links is not None:
        for wheel in sorted(options.find_links.glob("*.whl")):
            shutil.copyfile(wheel, wheels / wheel.name)
