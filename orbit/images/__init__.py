"""Container images of the frameworks: build, list and check them.

One shared `images/Dockerfile` makes all of them. An image says in its labels what it was built from, and an image that
does not match the current requirements is refused, so that a verdict never rests on other package versions than the
records name.
"""

from __future__ import annotations

from orbit.images._base import build_offline_base, offline_base_name
from orbit.images._build import BuildOptions, build_image, build_images
from orbit.images._engine import ask as ask_engine
from orbit.images._engine import host_variable as engine_host_variable
from orbit.images._inspect import ImageInfo, check_image, check_images, image_name, list_images
from orbit.images._recipe import AGENT_USER, REFERENCE_FRAMEWORK, REFERENCE_USER, agent_versions, reference_python

__all__ = [
    "AGENT_USER",
    "REFERENCE_FRAMEWORK",
    "REFERENCE_USER",
    "BuildOptions",
    "ImageInfo",
    "agent_versions",
    "ask_engine",
    "build_image",
    "build_images",
    "build_offline_base",
    "check_image",
    "check_images",
    "engine_host_variable",
    "image_name",
    "list_images",
    "offline_base_name",
    "reference_python",
]
