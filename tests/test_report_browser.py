"""The page in a real browser: no errors, no requests, and all of it by keyboard."""

import shutil

import pytest

pytest.importorskip("pandas")
pytest.importorskip("jinja2")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("there is no chromium on this machine", allow_module_level=True)

from equipoise.report import compare  # noqa: E402
from report_tables import HOSTILE, hostile_table  # noqa: E402

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def comparison():
    return compare(*hostile_table(), models=["linear"], cv=3)


@pytest.fixture(scope="module")
def address(comparison, tmp_path_factory):
    return comparison.save(tmp_path_factory.mktemp("page") / "page.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page and keeps what goes wrong on it."""
    contexts, trouble = [], []

    def open_it(**options):
        context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url in (address, "data:,") or trouble.append(request.url),
        )
        page.goto(address)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert trouble == []


def test_the_page_loads_without_errors_and_without_a_request(open_page):
    page = open_page()
    assert page.title() == "Which class weights?"
    assert page.locator("h1").count() == 1
    page.wait_for_timeout(200)


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_is_wider_than_the_screen(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    wider = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wider <= 0


def test_names_are_shown_as_text(open_page):
    page = open_page()
    names = page.locator("#classes tbody th").all_inner_texts()
    assert {" ".join(name.split()) for name in names} >= {
        " ".join(name.split()) for name in HOSTILE
    }
    assert page.locator("img, b:not(#now-cap)").count() == 0


def state(page):
    return page.evaluate(
        """() => ({
            alpha: document.querySelector('#alpha-value').textContent,
            standard: document.querySelector('#now-standard').textContent,
            worst: document.querySelector('#now-worst').textContent,
            widths: [...document.querySelectorAll('#bars .fill')].map(e => e.getAttribute('width')),
            texts: [...document.querySelectorAll('#bars .value')].map(e => e.textContent),
            here: document.querySelector('#here').getAttribute('cx'),
            says: document.querySelector('#alpha').getAttribute('aria-valuetext'),
        })"""
    )


def test_the_slider_moves_charts_and_numbers_together(open_page, comparison):
    page = open_page()
    path = comparison.to_dict()["path"]
    page.locator("#alpha").focus()
    seen = []
    page.keyboard.press("Home")
    for at, alpha in enumerate(path["alpha"]):
        now = state(page)
        assert now["alpha"] == f"{alpha:.2g}"
        assert now["standard"] == f"{100 * path['standard'][at]:.1f}%"
        assert now["worst"] == f"{100 * path['worst'][at]:.1f}%"
        assert now["texts"] == [f"{100 * risk:.1f}%" for risk in path["risk"][at]]
        order = sorted(range(len(now["widths"])), key=lambda i: path["risk"][at][i])
        drawn = [float(now["widths"][i].rstrip("%")) for i in order]
        assert drawn == sorted(drawn)
        assert now["alpha"] in now["says"] and now["standard"] in now["says"]
        seen.append((tuple(now["widths"]), now["here"], now["standard"]))
        page.keyboard.press("ArrowRight")
    assert len({widths for widths, *_ in seen}) > 1 and len({here for _, here, _ in seen}) > 1
    page.keyboard.press("Home")
    assert state(page)["alpha"] == "1"


def test_tables_sort_by_value_and_by_name(open_page):
    page = open_page()
    header = page.locator("#classes thead th").nth(1)
    button = header.locator("button")
    button.focus()

    def rows():
        cells = page.locator("#classes tbody tr td:nth-of-type(1)").all_inner_texts()
        return [int(cell.replace(",", "")) for cell in cells]

    before = rows()
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending" and rows() == sorted(before)
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"
    assert rows() == sorted(before, reverse=True)
    name = page.locator("#classes thead th").first
    name.locator("button").click()
    assert header.get_attribute("aria-sort") is None
    assert name.get_attribute("aria-sort") == "ascending"


def test_choices_can_be_drawn_and_left_out(open_page):
    page = open_page()
    boxes = page.locator("#chips input")
    for place in range(boxes.count()):
        box = boxes.nth(place)
        lines = page.locator(f'#dots [data-choice="{box.get_attribute("value")}"]')
        assert lines.first.is_visible() == box.is_checked()
        box.focus()
        page.keyboard.press("Space")
        assert lines.first.is_visible() == box.is_checked()


def test_costs_can_be_shown_as_regret(open_page, comparison):
    page = open_page()
    page.locator("#cost-kind input").first.focus()
    page.keyboard.press("ArrowRight")
    regrets = comparison.to_dict()["costs"]["regret"]
    shown = page.locator("#cost-table tbody tr").first.locator("td").all_inner_texts()
    assert shown[:-1] == ["best" if each == 0 else f"+{100 * each:.1f}" for each in regrets[0]]
    page.locator("#cost-table thead th button").nth(1).click()
    values = [
        float(row.locator("td").first.get_attribute("data-value"))
        for row in page.locator("#cost-table tbody tr").all()
    ]
    assert values == sorted(row[0] for row in regrets)


def test_everything_can_be_reached_by_the_keyboard(open_page):
    page = open_page()
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(e => e.id || e.className || e.closest('[id]')?.id || e.tagName)"
                "(document.activeElement)"
            )
        )
    assert {"skip", "alpha", "sort", "scroll"} <= reached
    assert any("chips" in each for each in reached)
    page.keyboard.press("Home")
    page.evaluate("document.body.focus()")


def test_focus_can_be_seen(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    box = page.locator(".skip").bounding_box()
    assert box["x"] >= 0
    page.locator("#alpha").focus()
    page.keyboard.press("ArrowRight")
    width = page.locator("#alpha").evaluate("e => getComputedStyle(e).outlineWidth")
    assert float(width.removesuffix("px")) >= 2


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion_follows_the_wish_of_the_reader(open_page, motion):
    page = open_page(reduced_motion=motion)
    moving = page.locator("#bars .fill").first.evaluate(
        "e => getComputedStyle(e).transitionDuration"
    )
    smooth = page.evaluate("getComputedStyle(document.documentElement).scrollBehavior")
    if motion == "reduce":
        assert set(moving.replace(" ", "").split(",")) == {"0s"} and smooth == "auto"
    else:
        assert moving != "0s" and smooth == "smooth"


def test_printing_unfolds_everything_and_hides_what_paper_cannot_do(open_page):
    page = open_page()
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible() and not page.locator("#chips").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("details table").first.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert len(page.pdf()) > 10_000


def test_the_page_is_whole_without_a_script(browser, address, comparison):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    summary = comparison.to_dict()
    body = page.locator("body").inner_text()
    assert "Use a linear model" in body and summary["code"].splitlines()[0] in body
    assert page.locator("#bars .fill").count() == len(summary["path"]["classes"])
    assert page.locator("#dots li:not(.off)").first.is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_no_barrier(open_page, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    results = axe.Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
    found = [
        (violation["id"], [node["target"] for node in violation["nodes"]][:5])
        for violation in results.response["violations"]
    ]
    assert found == []
