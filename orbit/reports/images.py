"""The table of framework images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from orbit.images import ImageInfo


def render_images(images: Sequence[ImageInfo]) -> Table | str:
    """A table of images, or one line that says there are none and how to make them."""
    if not images:
        return "No framework image is built; run `orbit images build NAME`."
    table = Table("image", "framework", "Python", "requirements", "agents", "size", "built (UTC)", "current")
    for image in images:
        agents = ", ".join(f"{name} {version}" for name, version in image.agents.items())
        table.add_row(
            image.name,
            f"{image.framework} {image.version}",
            image.python,
            image.requirements_digest[:12],
            agents,
            f"{image.size_bytes / 1e9:.2f} GB",
            f"{image.created_at:%Y-%m-%d %H:%M}",
            "yes" if image.current else f"no; run `orbit images build {image.framework}`",
        )
    return table
