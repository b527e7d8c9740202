"""The demo's page: self-contained, escaped, and complete."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from orbit.reports.demo_page import Curve, Page, Panel, draw_curve, render_page, write_page
from orbit.verification.verdict import Evidence, FailureMode, Outcome, Stage
from tests.unit.reports.verdicts import invalid_verdict, make_verdict, stages

CURVE = Curve("energy density", np.exp(-np.linspace(0, 4, 50)) - 1.5, line=-1.52, line_label="exact ground state")


def example() -> Page:
    panels = [
        Panel("A chain", make_verdict(), CURVE, "orbit verify a.py --task 99 --framework tensorcircuit"),
        Panel("Another", invalid_verdict(), None, "orbit verify b.py --task 98 --framework tensorcircuit"),
    ]
    host: dict[str, str | int | float | None] = {"cpu_model": "Abacus", "memory_bytes": 2**33, "MKL_NUM_THREADS": None}
    return Page(panels, [("environment", 61.0), ("trials", 80.5)], host=host, version="0.1.0")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [str(value) for name, value in attrs if name in {"src", "href", "xlink:href"}]
        if tag not in {"meta", "br", "img", "link", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_one_well_formed_file_that_loads_nothing() -> None:
    page = render_page(example())
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert "script" not in tags.seen
    assert [link for link in tags.links if not link.startswith(("#", "data:"))] == []
    assert "url(http" not in page


def test_page_shows_verdicts_numbers_and_times() -> None:
    page = render_page(example())
    for text in (
        "2 references judged: 1 provisional, 1 invalid",
        "2 min 22 s",
        "slowdown 1.04",
        "final_energy_density",
    ):
        assert text in page
    assert "no judge is configured" in page
    assert "8.0 GiB" in page
    assert "MKL" not in page


def test_text_of_an_artifact_is_escaped() -> None:
    found = stages()
    hostile = Evidence(check="<script>alert(1)</script>", outcome=Outcome.FAIL, message="x")
    found["execution"] = Stage.from_evidence([hostile], FailureMode.RUNTIME_API_EXCEPTION)
    verdict = make_verdict(stages=found, summary="<img src=x onerror=alert(1)>")
    page = render_page(Page([Panel("t", verdict, None, "cmd")], [("a", 1.0)]))
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def test_drawing_takes_the_colour_of_the_page_and_its_own_identifiers() -> None:
    first, second = draw_curve(CURVE, "one"), draw_curve(CURVE, "two")
    assert "currentColor" in first
    assert "#010203" not in first
    assert "exact ground state" in first
    clips = [set(re.findall(r'<clipPath id="(\w+)"', drawing)) for drawing in (first, second)]
    assert clips[0]
    assert not clips[0] & clips[1]
    assert draw_curve(CURVE, "one") == first


def test_steps_can_be_logarithmic() -> None:
    values = np.linspace(0, 1, 5000)
    assert draw_curve(Curve("f", values, log_steps=True), "x") != draw_curve(Curve("f", values), "x")


@pytest.mark.parametrize("label", ['a "quoted" label', "<b>"])
def test_label_is_escaped_in_the_attribute(label: str) -> None:
    drawing = draw_curve(Curve(label, np.arange(3.0)), "x")
    assert f'aria-label="{label}' not in drawing


def test_page_is_written_whole(tmp_path: Path) -> None:
    write_page(tmp_path / "sub" / "index.html", example())
    assert (tmp_path / "sub" / "index.html").read_text().rstrip().endswith("</html>")
