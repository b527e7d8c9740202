"""The table of framework images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from orbit.images import ImageInfo


def render_images(images: Sequence[ImageInfo]) -> Table | str:
    """A table of images, or one line that says there are none and how to make them."""
    if not images:
        return "No framework image is built; run `orbit images build NAME`."
    agents = sorted({f"{name} {version}" for image in images for name, version in image.agents.items()})
    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption=f"agents: {', '.join(agents)}", caption_justify="left")
    for column in ("image", "Python", "size", "built (UTC)", "current"):
        table.add_column(column, no_wrap=column != "current", overflow="fold")
    for image in images:
        table.add_row(
            image.name,
            image.python,
            f"{image.size_bytes / 1e9:.2f} GB",
            f"{image.created_at:%m-%d %H:%M}",
            "yes" if image.current else f"no: orbit images build {image.framework}",
        )
    return table
