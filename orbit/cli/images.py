"""`orbit images`: the container images of the frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orbit.cli import _shell

app = typer.Typer(
    name="images",
    help="Build, list and check the container images of the frameworks.",
    no_args_is_help=True,
    epilog=_shell.examples(
        "orbit images build pennylane", "orbit images build --offline-base --ca-bundle proxy.pem", "orbit images list"
    ),
)

_Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Frameworks; all of them if omitted.")]


@app.command(
    "build",
    epilog=_shell.examples(
        "orbit images build tensorcircuit pennylane",
        "orbit images build --base-image registry.example.org/python:3.12-slim tensorcircuit",
        "orbit images build --offline-base --ca-bundle /etc/ssl/certs/ca-certificates.crt torchquantum",
    ),
)
def build(
    names: _Names = None,
    base_image: Annotated[
        str | None, typer.Option(metavar="REF", help="Image with the framework's Python; default python:X.Y-slim.")
    ] = None,
    reference_base_image: Annotated[
        str | None, typer.Option(metavar="REF", help="Image with the Python of the TensorCircuit reference.")
    ] = None,
    ca_bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", envvar="ORBIT_CA_BUNDLE", help="Certificates to trust in the build (PEM)."),
    ] = None,
    find_links: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Wheels that pip may take beside the package index.")
    ] = None,
    network: Annotated[str | None, typer.Option(metavar="MODE", help="Network of the build, such as host.")] = None,
    offline_base: Annotated[
        bool,
        typer.Option("--offline-base", help="Make the base image with debootstrap; needs root, no image registry."),
    ] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Build every layer anew.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every line of the build.")] = False,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Build framework images, one after the other."""
    from orbit.images import BuildOptions, build_images
    from orbit.reports.images import render_images

    options = BuildOptions(
        base_image=base_image,
        reference_base_image=reference_base_image,
        ca_bundle=ca_bundle,
        network=network,
        find_links=find_links,
        offline_base=offline_base,
        no_cache=no_cache,
        verbose=verbose,
    )
    with _shell.progress() as report:
        built = build_images(names or [], options, progress=report)
    _shell.show_json(built) if json else _shell.show(render_images(built))


@app.command("list", epilog=_shell.examples("orbit images list", "orbit images list --json"))
def list_built(json: _shell.JsonOption = False, debug: _shell.DebugOption = False) -> None:
    """List the framework images that the engine holds, and whether each is current."""
    from orbit.images import list_images
    from orbit.reports.images import render_images

    found = list_images()
    _shell.show_json(found) if json else _shell.show(render_images(found))


@app.command("check", epilog=_shell.examples("orbit images check tensorcircuit", "orbit images check"))
def check(names: _Names = None, json: _shell.JsonOption = False, debug: _shell.DebugOption = False) -> None:
    """Check that images exist and were built from the requirements as they are now."""
    from orbit.images import check_images
    from orbit.reports.images import render_images

    found = check_images(names or [])
    _shell.show_json(found) if json else _shell.show(render_images(found))
