"""Pages in a real browser: on a screen, on a phone, on paper and by keyboard.

In continuous integration, and with PIPEPROF_SCREENS=1, screenshots of all pages are left in
.screens/ for people to look at.
"""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.model import Profile
from tests.report.html.conftest import Opener
from tests.report.html.pages import PAGES, guided_sweep
from tests.samples import sample_profile

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOOKS = (("light", 1440), ("dark", 390))
OPENED = ("profile", "many-workers", "single-batch", "unheard-of", "hostile", "guided-sweep",
          "conversion", "hostile-sweep")  # fmt: skip
_DRAWN = """() => Object.fromEntries([...document.querySelectorAll('[data-chart]')].map((chart) => {
    const marks = [...chart.querySelectorAll('svg :is(.mark-rect, .mark-symbol) path')];
    const visible = marks.filter((mark) => {
        const { width, height } = mark.getBoundingClientRect();
        return width * height > 0.5 && getComputedStyle(mark).fill !== 'none';
    });
    return [chart.dataset.chart, visible.length];
}))"""
"""JavaScript that returns chart → number of its visible marks."""
_FITS = """() => [...document.querySelectorAll('[data-chart]')].every(
    (chart) => Math.abs(chart.querySelector('svg').getAttribute('width') - chart.clientWidth) < 2
)"""
"""JavaScript that is true once all charts have followed the size of the window."""
_REACHED = """() => {
    const at = document.activeElement;
    return at === document.body ? null : [...document.querySelectorAll('*')].indexOf(at);
}"""
_REACHABLE = """() => {
    const all = [...document.querySelectorAll('*')];
    const reachable = all.filter((e) => e.matches('a[href], button, summary, [tabindex="0"]'));
    return reachable.filter((e) => e.checkVisibility()).map((e) => all.indexOf(e));
}"""

_TABLES = """() => [...document.querySelectorAll('.wide')].map(
    (table) => [table.getBoundingClientRect().left, table.clientWidth, table.scrollWidth]
)"""
"""JavaScript for the left edge, the width and the content width of each element."""


class Slow(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 240

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.001)
        return torch.zeros(4)


def look(page: Page, theme: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.wait_for_function(_FITS)


def nothing_is_wider_than_the_page(page: Page) -> None:
    wide, seen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= seen


def every_chart_is_drawn(page: Page) -> None:
    for name, seen in page.evaluate(_DRAWN).items():
        assert seen > 0, f"{name} is blank"


def keep(page: Page, repo: Path, name: str) -> None:
    """Save a screenshot of the whole page, if asked for: it takes half a second."""
    if {"CI", "PIPEPROF_SCREENS"} & os.environ.keys():
        path = repo / ".screens" / f"{name}.jpg"
        page.screenshot(path=path, full_page=True, quality=75)


def every_chart_is_there_to_the_eye(page: Page) -> None:
    charts = page.locator("[data-chart]").all()
    assert len(charts) >= 5
    for chart in charts:
        with Image.open(io.BytesIO(chart.screenshot())) as picture:
            seen = picture.convert("RGB").getcolors(1 << 24)
        assert seen is not None
        assert len([pixels for pixels, _ in seen if pixels > 20]) > 3


@pytest.mark.parametrize("name", OPENED)
def test_a_page_opens_well_on_a_screen_and_on_a_phone(
    name: str, opened: Opener, repo: Path
) -> None:
    page = opened(PAGES[name])
    for theme, width in LOOKS:
        look(page, theme, width)
        nothing_is_wider_than_the_page(page)
        every_chart_is_drawn(page)
        keep(page, repo, f"{name}-{width}-{theme}")
    assert page.evaluate("window.harmed") is None


def test_the_profile_of_a_real_loader(opened: Opener, repo: Path) -> None:
    loader = pipeprof.wrap(DataLoader(Slow(), 8, num_workers=2))
    for _ in loader:
        time.sleep(0.002)
    profile = loader.profile()
    page = opened(profile)
    every_chart_is_there_to_the_eye(page)
    assert page.locator(".verdict").inner_text().lower().startswith(profile.diagnosis.verdict)
    keep(page, repo, "real-1280-light")


@pytest.mark.parametrize("name", ["profile", "guided-sweep"])
def test_the_keyboard_reaches_every_control(name: str, opened: Opener) -> None:
    page = opened(PAGES[name])
    wanted = set(page.evaluate(_REACHABLE))
    reached = set()
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(_REACHED))
    assert wanted <= reached


def times_shown(page: Page) -> list[str]:
    """Return the labels of the timeline's axis."""
    axis = page.locator("[data-chart=timeline] svg .role-axis-label").first
    return sorted(axis.locator("text").all_text_contents())


def test_the_timeline_is_zoomed_by_keys_and_by_buttons(opened: Opener) -> None:
    page = opened(PAGES["profile"])
    whole = times_shown(page)
    page.locator("[data-chart=timeline]").focus()
    page.keyboard.press("+")
    nearer = times_shown(page)
    assert nearer != whole
    page.keyboard.press("ArrowRight")
    assert times_shown(page) not in (whole, nearer)
    page.get_by_role("button", name="All").click()
    assert times_shown(page) == whole
    page.get_by_role("button", name="Zoom out").click()
    assert times_shown(page) == whole, "there is no more than all of it"


def test_the_name_of_a_stage_shows_its_explanation(opened: Opener) -> None:
    page = opened(sample_profile())
    term = page.locator("#stages a.term", has_text="decode").first
    term.focus()
    assert page.locator("#tip").inner_text() == "worker, in fetch: encoded bytes → arrays"
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    term.hover()
    assert page.locator("#tip").is_visible()


def column(page: Page, title: str) -> list[str]:
    place = page.locator("#trials thead th").all_inner_texts().index(title) + 1
    return page.locator(f"#trials tbody tr > :nth-child({place})").all_inner_texts()


def test_trials_are_sorted_by_a_press_of_a_key(opened: Opener) -> None:
    page = opened(guided_sweep())
    button = page.locator("#trials thead").get_by_role("button", name="samples/s")
    before = column(page, "samples/s")
    button.focus()
    page.keyboard.press("Enter")
    falling = [float(text.replace(",", "")) for text in column(page, "samples/s")]
    assert falling == sorted(falling, reverse=True) != before
    assert page.locator("#trials th[aria-sort=descending]").count() == 1
    page.keyboard.press("Enter")
    rising = [float(text.replace(",", "")) for text in column(page, "samples/s")]
    assert rising == sorted(rising)
    page.locator("#trials thead").get_by_role("button", name="predicted").press("Enter")
    assert column(page, "predicted")[-1] == "", "what is not known comes last"


@pytest.mark.parametrize("name", ["sweep", "guided-sweep", "conversion"])
def test_every_table_is_as_wide_as_its_neighbours(name: str, opened: Opener) -> None:
    page = opened(PAGES[name], viewport={"width": 1280, "height": 900})
    found = page.evaluate(_TABLES)
    assert len(found) >= 2
    assert len({(left, width) for left, width, _ in found}) == 1
    assert all(scrolled <= width for _, width, scrolled in found)


@pytest.mark.parametrize("width", [390, 1440])
def test_each_number_of_workers_is_named_below_the_chart(width: int, opened: Opener) -> None:
    page = opened(PAGES["sweep"], viewport={"width": width, "height": 900})
    axis = page.locator("[data-chart=settings] svg .role-axis-label").first
    assert axis.locator("text").all_text_contents() == ["0", "1", "2"]


def colours(page: Page) -> list[str]:
    """Return the colours of the page and of the bar of the lowest ceiling."""
    bar = "[data-chart=roofline] .mark-rect path"
    script = f"""[getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector({bar!r})).fill]"""
    found: list[str] = page.evaluate(script)
    return found


def test_light_and_dark_by_the_system_and_by_the_button(opened: Opener) -> None:
    page = opened(sample_profile())
    page.emulate_media(color_scheme="light")
    light = colours(page)
    page.emulate_media(color_scheme="dark")
    dark = colours(page)
    assert light[0] != dark[0]
    assert light[1] != dark[1], "charts follow"
    page.get_by_role("button", name="Light or dark").press("Enter")
    assert colours(page) == light


def test_paper_is_light(opened: Opener) -> None:
    page = opened(PAGES["profile"], color_scheme="dark")
    page.emulate_media(media="print")
    assert colours(page)[0] == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_scripts_all_figures_can_be_read(opened: Opener) -> None:
    page = opened(PAGES["profile"], java_script_enabled=False)
    for text in ("decode", "83 % of that wait", "Shares of the time"):
        assert page.get_by_text(text).first.is_visible()


@pytest.mark.timed
def test_a_page_of_64_workers_can_be_used_within_two_seconds(opened: Opener) -> None:
    profile = PAGES["many-workers"]
    assert isinstance(profile, Profile)
    assert float(opened(profile).evaluate("document.documentElement.dataset.ready")) < 2000
