"""Where data lies: tasks and frameworks as shipped, and what is cached per user."""

from __future__ import annotations

import os
from pathlib import Path

from orbit.errors import SetupError


def data_root() -> Path:
    """Directory that holds `tasks/`, `frameworks/`, `references/`, `images/` and `audits/`.

    `ORBIT_DATA` overrides; otherwise it is the data inside an installed package, or the checkout this file lies in.

    Raises:
        SetupError: no such directory holds tasks and frameworks.
    """
    override = os.environ.get("ORBIT_DATA")
    package = Path(__file__).resolve().parent
    candidates = [Path(override).expanduser().resolve()] if override else [package / "_data", package.parent]
    for candidate in candidates:
        if (candidate / "tasks").is_dir() and (candidate / "frameworks").is_dir():
            return candidate
    source = f"ORBIT_DATA={override}" if override else str(package)
    raise SetupError(
        f"{source}: no tasks/ and frameworks/ there; set ORBIT_DATA to a checkout of orbit, or reinstall it"
    )


def cache_dir() -> Path:
    """Per-user cache (framework environments, prepared inputs); `ORBIT_CACHE_DIR` overrides. Not created here."""
    override = os.environ.get("ORBIT_CACHE_DIR")
    if override:
        return Path(override).expanduser().resolve()
    import platformdirs

    return Path(platformdirs.user_cache_dir("orbit", appauthor=False))
