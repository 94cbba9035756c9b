"""The console in a real browser: what people do with it, by mouse and by keyboard.

With `EVERMAT_PICTURES=docs/pictures` the same test makes the pictures of the pages.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from served import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PICTURES = os.environ.get("EVERMAT_PICTURES")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "access"

pytest.importorskip("playwright", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("there is no Chromium (apt install chromium)", allow_module_level=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  see above

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    kb = KnowledgeBase(EXAMPLE / "rules.dl")
    kb.load({file.stem: file for file in (EXAMPLE / "facts").glob("*.csv")})
    with running(kb, "access") as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(
        base_url=address, viewport={"width": 1180, "height": 800}
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text)
            if message.type == "error" and "status of 4" not in message.text
            else None
        ),
    )
    yield page
    context.close()
    assert problems == []


@pytest.fixture
def picture(page: Page) -> Callable[[str], None]:
    def take(name: str) -> None:
        if PICTURES is not None:
            page.wait_for_timeout(300)
            page.screenshot(path=Path(PICTURES, f"console-{name}.png"))

    return take


def test_the_overview_shows_predicates_and_what_depends_on_what(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.goto("/")
    page.locator("svg.graph a[data-name=may_open]").wait_for()
    assert page.locator("svg.graph a").count() == 12
    assert page.locator("svg.graph path.negated.edge").count() == 3
    picture("overview")
    page.locator("svg.graph a[data-name=suspended]").click()
    page.get_by_role("heading", name="suspended").wait_for()
    page.locator("tbody a.why").first.wait_for()
    assert page.locator("tbody tr").count() == 9


def test_a_query_is_asked_sorted_and_explained(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.goto("/console/#/query")
    page.locator("#query").fill('may_open("p001", ?folder)')
    page.keyboard.press("Control+Enter")
    page.locator("tbody tr").first.wait_for()
    page.locator("thead button").click()
    page.locator("th[aria-sort=ascending]").wait_for()
    rows = page.locator("tbody td:first-child").all_inner_texts()
    assert rows == sorted(rows)
    assert len(rows) > 5
    picture("query")
    page.locator("tbody a.why").first.click()
    page.locator(".proof .card.derived").first.wait_for()
    assert rows[0] in page.locator(".proof .card .fact").first.inner_text()
    shown = page.locator(".proof .card:visible").count()
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert page.locator(".proof .card:visible").count() == 1
    page.get_by_role("button", name="Unfold all").click()
    assert page.locator(".proof .card:visible").count() >= shown
    page.locator(".proof .by summary").first.click()
    assert page.locator(".proof .rule").first.is_visible()
    picture("why")


def test_wrong_queries_say_where_and_what_to_do(page: Page) -> None:
    page.goto("/console/#/query?q=" + "may_opn(?x, ?y)")
    problem = page.locator(".problem")
    problem.wait_for()
    assert "there is no predicate" in problem.inner_text()
    assert "did you mean" in problem.inner_text()


def test_why_not_leads_on_to_what_is_missing(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.goto("/console/#/why")
    page.locator("#fact").fill('may_open("p354", "/f409")')
    page.keyboard.press("Enter")
    failed = page.locator(".failures .failed").first
    failed.wait_for()
    assert 'there is suspended("p354")' in failed.inner_text()
    picture("why-not")
    page.locator("#fact").fill('may_open("p001", "/f106")')
    page.keyboard.press("Enter")
    page.locator(".failures a.why").first.click()
    page.locator("code", has_text='granted("p001", "/f106")').first.wait_for()


def test_an_update_is_shown_first_then_made_compared_and_taken_back(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.goto("/console/#/update")
    make = page.get_by_role("button", name="Make the update")
    assert make.is_disabled()
    page.locator("#remove").fill('suspended("p354") .')
    page.locator("#add").fill('part_of("team-12", "dept-4") .\nsuspended("p001") .')
    page.locator("#update-title").fill("A suspension ends, another begins")
    page.get_by_role("button", name="Show what would change").click()
    page.get_by_role("heading", name="What would change").wait_for()
    assert page.locator(".facts li.minus").count() > 0
    picture("update")
    # What was shown is not what would be made any more.
    page.locator("#add").press_sequentially("% more")
    assert make.is_disabled()
    page.get_by_role("button", name="Show what would change").click()
    make.click()
    page.get_by_role("heading", name="Version 1").wait_for()
    page.locator("#notice", has_text="Version 1").wait_for()

    page.goto("/console/#/versions?number=1")
    page.get_by_role("heading", name="What version 1 changed").wait_for()
    assert page.locator(".versions li").count() == 2
    picture("versions")
    page.get_by_role("button", name="Go back …").click()
    page.get_by_role("heading", name="Going back to version 0").wait_for()
    page.get_by_role("button", name="Go back", exact=True).click()
    page.locator(".versions li", has_text="Back to version 0").wait_for()


def test_rules_and_contradictions_are_listed(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.goto("/console/#/rules")
    page.locator(".rules li").first.wait_for()
    assert page.locator(".rules li").count() == 10
    page.get_by_role("link", name="Measure them").click()
    page.locator(".rules meter").first.wait_for()
    picture("rules")
    page.goto("/console/#/contradictions")
    page.locator("p.empty").wait_for()


def test_the_keyboard_reaches_everything(page: Page) -> None:
    page.goto("/console/")
    page.locator("svg.graph").wait_for()
    page.keyboard.press("6")
    page.locator(".rules").first.wait_for()
    page.keyboard.press("/")
    page.locator("#query:focus").wait_for()
    page.locator("#query").blur()
    page.keyboard.press("?")
    page.locator("#help[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator("#help").wait_for(state="hidden")
    page.keyboard.press("1")
    page.locator("svg.graph").wait_for()
    page.locator("body").press("Tab")
    assert page.locator(":focus").count() == 1


def test_narrow_screens_and_dark_ones(
    browser: Browser, address: str, picture: Callable[[str], None]
) -> None:
    del picture
    context = browser.new_context(
        base_url=address,
        viewport={"width": 390, "height": 780},
        color_scheme="dark",
        is_mobile=True,
    )
    page = context.new_page()
    for place, part in (
        ("/console/", "svg.graph"),
        ('/console/#/why?fact=may_open("p001","/f512")', ".proof, .failures"),
        ("/console/#/update", "#add"),
        ("/console/#/versions", ".versions"),
    ):
        page.goto(place)
        page.locator(part).first.wait_for()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, place
        if PICTURES is not None and "why" in place:
            page.screenshot(path=Path(PICTURES, "console-narrow.png"))
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(17, 20, 28)"
    context.close()
