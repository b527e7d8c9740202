"""Frameworks as data: `frameworks/<name>/framework.toml` and the lists that all of them share."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from orbit._names import unknown_name
from orbit._toml import read_toml, validate
from orbit.errors import DataError
from orbit.paths import data_root

ImportName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
_SHARED = "_shared"

REFERENCE_FRAMEWORK = "tensorcircuit"
"""The framework whose reference sets the time unit for all."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _SharedPolicy(_Strict):
    """`frameworks/_shared/policy.toml`: what every framework's static policy starts from."""

    schema_version: Literal[1]
    quantum_packages: tuple[ImportName, ...]
    tensor_network_libraries: tuple[ImportName, ...]


class _Policy(_Strict):
    """`[policy]` of a `framework.toml`."""

    required: tuple[ImportName, ...] = Field(min_length=1)
    companions: tuple[ImportName, ...] = ()
    forbidden_extra: tuple[ImportName, ...] = ()


class _FrameworkFile(_Strict):
    """`framework.toml` as written."""

    schema_version: Literal[1]
    title: str
    package: str
    import_name: ImportName
    python: Annotated[str, StringConstraints(pattern=r"^3\.\d+$")]
    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._/-]*$")]
    homepage: str
    bare_imports: tuple[ImportName, ...] = Field(min_length=1)
    install_hint: str = ""
    policy: _Policy
    variants: dict[str, str] = {}


class Framework(_Strict):
    """A quantum software package under comparison.

    Attributes:
        name: directory name, the name users type.
        title: how people write it.
        package: distribution name; its version is pinned in `requirements`.
        import_name: what a program imports.
        python: interpreter version that has wheels of everything, such as `3.12`.
        image: name of the container image, without tag.
        bare_imports: modules whose import is not the artifact's doing: the framework, its numerical backend and the
            optimizer library. The runner times them apart and subtracts them from an artifact's import time.
        install_hint: what a user may have to do before the pinned packages can be installed.
        required_imports: an artifact must import one of these and call it.
        companions: packages that belong to the framework and are allowed although they could look like another one.
        forbidden_imports: import names of other quantum packages.
        tensor_network_libraries: general libraries whose import is a note, not a failure.
        variants: name of a prompt variant to the block appended for it.
    """

    name: str
    title: str
    package: str
    import_name: str
    python: str
    image: str
    homepage: str
    directory: Path
    bare_imports: tuple[str, ...]
    install_hint: str
    required_imports: tuple[str, ...]
    companions: tuple[str, ...]
    forbidden_imports: frozenset[str]
    tensor_network_libraries: frozenset[str]
    variants: dict[str, Path]

    @property
    def requirements(self) -> Path:
        """The pinned requirement lock."""
        return self.directory / "requirements.txt"

    @property
    def prompt_path(self) -> Path:
        """The framework's prompt block, a template that extends `_shared/prompt.md.j2`."""
        return self.directory / "prompt.md"

    @property
    def provenance_path(self) -> Path:
        """The adapter that counts native gates during the first probe; it need not exist."""
        return self.directory / "provenance.py"

    @cached_property
    def requirements_digest(self) -> str:
        """SHA-256 over interpreter version and requirement lock: what an environment or image is built from."""
        return hashlib.sha256(f"{self.python}\n".encode() + self._lock().encode()).hexdigest()

    @cached_property
    def pinned_versions(self) -> dict[str, str]:
        """Distribution name to version, as pinned."""
        matches = (_PIN.match(line) for line in self._lock().splitlines())
        return {match[1].lower(): match[2] for match in matches if match}

    @property
    def version(self) -> str:
        """Pinned version of the framework itself."""
        try:
            return self.pinned_versions[self.package.lower()]
        except KeyError:
            raise DataError(f"{self.requirements}: {self.package} is not pinned; add {self.package}==VERSION") from None

    def variant_path(self, variant: str) -> Path:
        """The block of a prompt variant.

        Raises:
            UsageError: the framework has no such variant.
        """
        if variant not in self.variants:
            raise unknown_name(f"variant of {self.name}", variant, list(self.variants))
        return self.variants[variant]

    def _lock(self) -> str:
        try:
            return self.requirements.read_text(encoding="utf-8")
        except OSError as error:
            raise DataError(f"{self.requirements}: cannot be read ({error.strerror}); restore the file") from error


def load_framework(directory: Path) -> Framework:
    """Read one framework directory.

    Raises:
        DataError: `framework.toml`, the shared lists or a variant's file are missing or wrong.
    """
    path = directory / "framework.toml"
    file = validate(path, _FrameworkFile, read_toml(path))
    shared_path = directory.parent / _SHARED / "policy.toml"
    shared = validate(shared_path, _SharedPolicy, read_toml(shared_path))
    variants = {name: directory / relative for name, relative in sorted(file.variants.items())}
    for name, block in variants.items():
        if not block.is_file():
            raise DataError(
                f"{path}: variants.{name} = {file.variants[name]!r}: no such file; write it or remove the key"
            )
    own = {name.partition(".")[0] for name in (*file.policy.required, *file.policy.companions)}
    forbidden = (set(shared.quantum_packages) | set(file.policy.forbidden_extra)) - own
    return Framework(
        name=directory.name,
        directory=directory,
        variants=variants,
        required_imports=file.policy.required,
        companions=file.policy.companions,
        forbidden_imports=frozenset(forbidden),
        tensor_network_libraries=frozenset(shared.tensor_network_libraries),
        **file.model_dump(
            include={
                "title",
                "package",
                "import_name",
                "python",
                "image",
                "homepage",
                "bare_imports",
                "install_hint",
            }
        ),
    )


def all_frameworks() -> list[Framework]:
    """Every framework, by name."""
    root = data_root() / "frameworks"
    return [load_framework(path.parent) for path in sorted(root.glob("*/framework.toml"))]


def find_framework(name: str) -> Framework:
    """The framework of that name.

    Raises:
        UsageError: there is none; the text names the near matches.
    """
    root = data_root() / "frameworks"
    names = sorted(path.parent.name for path in root.glob("*/framework.toml"))
    wanted = name.strip().lower()
    if wanted not in names:
        raise unknown_name("framework", name, names)
    return load_framework(root / wanted)
