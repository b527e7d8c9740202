"""What images there are, and whether one may be used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from orbit.errors import SetupError
from orbit.frameworks import Framework, all_frameworks, find_framework
from orbit.images import _engine, _recipe


class ImageInfo(BaseModel):
    """One built framework image, as its labels and the engine describe it. Sizes in bytes."""

    model_config = ConfigDict(frozen=True)

    name: str
    image_id: str
    framework: str
    version: str
    python: str
    requirements_digest: str
    reference_digest: str
    base_image: str
    agents: dict[str, str]
    size_bytes: int
    created_at: datetime
    current: bool
    """Whether it was built from the requirements as they are now."""


def image_name(framework: Framework) -> str:
    """Name and tag of the framework's image; the tag is the framework's version."""
    return f"{framework.image}:{framework.version.replace('+', '-')}"


def list_images() -> list[ImageInfo]:
    """Every framework image that the engine holds, by framework and tag.

    Raises:
        SetupError: no engine answers.
    """
    output = _engine.ask("image", "ls", "--filter", f"label={_recipe.FRAMEWORK_LABEL}", "--quiet", "--no-trunc")
    identifiers = list(dict.fromkeys(output.split()))
    if not identifiers:
        return []
    known = {framework.name: framework for framework in all_frameworks()}
    infos = [
        _info(data, name, known.get(data["Config"]["Labels"][_recipe.FRAMEWORK_LABEL]))
        for data in json.loads(_engine.ask("image", "inspect", *identifiers))
        for name in data["RepoTags"] or []
    ]
    return sorted(infos, key=lambda info: (info.framework, info.name))


def check_image(framework: Framework | str, program: str = "docker") -> ImageInfo:
    """The image of a framework that `docker` or `podman` holds, if it may be used.

    Raises:
        SetupError: no engine answers, the image is missing, or it was built from other requirements; the text names the
            command that builds it.
    """
    framework = find_framework(framework) if isinstance(framework, str) else framework
    name = image_name(framework)
    rebuild = f"run `orbit images build {framework.name}`"
    if program == "podman":
        rebuild += f" and `docker save {name} | podman load`"
    if not _engine.ask("image", "ls", "--quiet", name, program=program).strip():
        raise SetupError(f"{name}: no such image; {rebuild}")
    info = _info(json.loads(_engine.ask("image", "inspect", name, program=program))[0], name, framework)
    if info.requirements_digest != framework.requirements_digest:
        raise SetupError(
            f"{name}: built from requirements {_short(info.requirements_digest)}, {framework.requirements} is now "
            f"{_short(framework.requirements_digest)}; {rebuild}"
        )
    reference = find_framework(_recipe.REFERENCE_FRAMEWORK)
    if info.reference_digest != reference.requirements_digest:
        raise SetupError(
            f"{name}: its reference environment was built from requirements {_short(info.reference_digest)}, "
            f"{reference.requirements} is now {_short(reference.requirements_digest)}; {rebuild}"
        )
    return info


def check_images(names: Sequence[str]) -> list[ImageInfo]:
    """The images of the named frameworks, or of all, if all of them may be used.

    Raises:
        SetupError: as `check_image`, for the first that may not.
    """
    return [check_image(framework) for framework in [find_framework(name) for name in names] or all_frameworks()]


def _info(data: dict[str, Any], name: str, framework: Framework | None) -> ImageInfo:
    labels: dict[str, str] = data["Config"].get("Labels") or {}
    requirements = labels.get(_recipe.REQUIREMENTS_LABEL, "")
    reference = labels.get(_recipe.REFERENCE_LABEL, "")
    return ImageInfo(
        name=name,
        image_id=data["Id"],
        framework=labels.get(_recipe.FRAMEWORK_LABEL, ""),
        version=labels.get(_recipe.VERSION_LABEL, ""),
        python=labels.get(_recipe.PYTHON_LABEL, ""),
        requirements_digest=requirements,
        reference_digest=reference,
        base_image=labels.get(_recipe.BASE_LABEL, ""),
        agents={
            key.removeprefix(_recipe.AGENT_LABEL_PREFIX): value
            for key, value in sorted(labels.items())
            if key.startswith(_recipe.AGENT_LABEL_PREFIX)
        },
        size_bytes=data["Size"],
        created_at=data["Created"],
        current=framework is not None
        and requirements == framework.requirements_digest
        and reference == find_framework(_recipe.REFERENCE_FRAMEWORK).requirements_digest,
    )


def _short(digest: str) -> str:
    return digest[:12] or "(no label)"
