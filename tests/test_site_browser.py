"""The site that ``make docs`` has built, in a real browser: no errors, no network, and a search."""

from itertools import product

import pytest

import equipoise
from served_site import CHROMIUM, FLAGS, served, why_not

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if why_not():
    pytest.skip(why_not(), allow_module_level=True)

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
REFERENCE = "api/generated/equipoise.RobustLogisticRegression.html"
GALLERY = "auto_examples/plot_worst_class.html"
OTHERS = [
    "start.html",
    "thyroid.html",
    "guide/index.html",
    "auto_examples/index.html",
    "api/index.html",
    "theory/index.html",
    "results/README.html",
    "scale.html",
]
# Those that differ most are looked at in every way, the others in one way each.
LOOKS = [
    *product(["index.html", GALLERY, REFERENCE], [PHONE, DESK], ["light", "dark"]),
    *((path, PHONE, ["light", "dark"][place % 2]) for place, path in enumerate(OTHERS)),
]


@pytest.fixture(scope="module")
def address():
    """Where the site is served: on this machine alone."""
    with served() as at:
        yield at


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    """Opens a page, and in the end looks at what went wrong on it."""
    contexts, trouble = [], []

    def heard(message):
        if message.type in {"error", "warning"}:
            trouble.append(f"{message.type}: {message.text}")

    def asked(request):
        if not request.url.startswith((address, "data:")):
            trouble.append(f"request to {request.url}")

    def answered(response):
        if response.status >= 400:
            trouble.append(f"{response.status} for {response.url}")

    def open_it(path, **options):
        contexts.append(browser.new_context(**({"viewport": DESK} | options)))
        page = contexts[-1].new_page()
        page.on("console", heard)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", asked)
        page.on("response", answered)
        page.goto(address + path, wait_until="networkidle")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.mark.parametrize(("path", "viewport", "scheme"), LOOKS)
def test_a_page_opens_without_trouble_and_fits(open_page, path, viewport, scheme):
    page = open_page(path, viewport=viewport, color_scheme=scheme)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth") <= page.evaluate(f"{root}.clientWidth")
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    assert page.evaluate(broken) == []
    if path != "thyroid.html":
        assert page.get_attribute("html", "data-theme") == scheme


def test_mathematics_are_drawn_by_files_of_the_site(open_page):
    page = open_page(REFERENCE)
    page.wait_for_selector("mjx-container mjx-math")
    assert page.locator("mjx-merror").count() == 0
    # The fonts too.
    assert page.evaluate("document.fonts.check('16px MJXTEX')")


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_search_finds_a_word(open_page, viewport):
    page = open_page("index.html", viewport=viewport)
    page.locator(".search-button:visible, .search-button-field:visible").first.click()
    page.keyboard.type("LabelCVaR")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a")
    # They come one after another.
    found.nth(4).wait_for()
    assert "equipoise.LabelCVaR.html" in found.first.get_attribute("href")


def test_pages_have_one_picture_for_their_ground(open_page):
    for scheme in ("light", "dark"):
        page = open_page("index.html", color_scheme=scheme)
        picture = page.locator("img.first-picture")
        assert picture.count() == 1 and picture.is_visible()
        # It has the colours of the scheme itself, and is loaded.
        assert picture.evaluate("image => image.complete && image.naturalWidth > 100")


@pytest.mark.parametrize("path", ["index.html", "guide/fraud.html"])
def test_the_switcher_names_this_version_and_leads_to_the_same_page(open_page, path):
    page = open_page(path)
    button = page.locator(".version-switcher__button:visible")
    assert equipoise.__version__ in button.inner_text()
    button.click()
    versions = page.locator(".version-switcher__menu:visible a")
    assert equipoise.__version__ in versions.first.inner_text()
    versions.first.click()
    page.wait_for_load_state("networkidle")
    assert page.url.partition("#")[0].endswith(path)
