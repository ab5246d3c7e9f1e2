"""The page in a real browser: no errors, no requests, and all of it by keyboard."""

import re
import shutil
from functools import cache

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

pytest.importorskip("pandas")
pytest.importorskip("jinja2")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("there is no chromium on this machine", allow_module_level=True)

from equipoise.report import Comparison, compare  # noqa: E402
from report_tables import HOSTILE, hostile_table  # noqa: E402

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
CRIMES = {
    "motor vehicle theft": 160,
    "assault": 120,
    "burglary": 100,
    "fraud": 80,
    "vandalism": 60,
    "arson": 40,
    "disorderly conduct": 40,
    "trespassing": 30,
    "embezzlement": 8,
    "kidnapping": 1,
}


def ordinary_comparison():
    """Ten classes, one of few rows and one of a single one, and four models, two of them alike."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(len(CRIMES)), list(CRIMES.values()))
    X = rng.normal(size=(len(label), 4)) + rng.normal(size=(len(CRIMES), 4))[label]
    models = {
        "logistic regression": LogisticRegression(),
        "the forecast of the claims department, calibrated (version 3)": GaussianNB(),
        "scaled_and_selected_columns_then_DecisionTreeClassifier": DecisionTreeClassifier(
            max_depth=4, random_state=0
        ),
        "the same once more": LogisticRegression(),
    }
    return compare(X, np.array(list(CRIMES))[label], models, cv=3)


def failed_comparison():
    """Two models that have learnt nothing."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.2, "yes", "no")
    models = {
        "nothing": DummyClassifier(),
        "still nothing": DummyClassifier(strategy="constant", constant="no"),
    }
    return compare(rng.normal(size=(300, 2)), y, models, goals="standard", cv=3)


def metric_comparison():
    """One goal that is a metric."""
    X, y = hostile_table()
    names = [f"class {label}" for label in np.unique(y, return_inverse=True)[1]]
    return compare(X, np.array(names), ["linear"], goals="f1_macro", cv=3)


def stranger_comparison():
    """Models with the names of HOSTILE."""
    rng = np.random.default_rng(0)
    y = np.repeat(["one", "two"], 60)
    X = rng.normal(size=(120, 2)) + (y == "two")[:, None]
    models = {
        name: DecisionTreeClassifier(max_depth=4, splitter="random", random_state=at)
        for at, name in enumerate(HOSTILE)
    }
    return compare(X, y, models, goals="worst_class", cv=3)


@cache
def comparison_of(kind):
    return {
        "hostile": lambda: compare(*hostile_table(), models=["linear"], cv=3),
        "ordinary": ordinary_comparison,
        "failed": failed_comparison,
        "metric": metric_comparison,
        "stranger": stranger_comparison,
    }[kind]()


@pytest.fixture(scope="module")
def comparison():
    return comparison_of("hostile")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Addresses of the pages of all kinds."""
    folder = tmp_path_factory.mktemp("page")
    return cache(lambda kind: comparison_of(kind).save(folder / f"{kind}.html").as_uri())


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, address):
    """Opens a page and keeps what goes wrong on it."""
    contexts, trouble = [], []

    def open_it(kind="hostile", **options):
        context = browser.new_context(**({"viewport": DESK} | options))
        contexts.append(context)
        page, place = context.new_page(), address(kind)
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url in (place, "data:,") or trouble.append(request.url),
        )
        page.goto(place)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert trouble == []


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")


KINDS = ["hostile", "ordinary", "failed", "metric", "stranger"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_loads_without_errors_and_without_a_request(open_page, kind):
    page = open_page(kind)
    assert page.title() == "Report on class weights"
    assert page.locator("h1").count() == 1
    page.wait_for_timeout(200)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_is_wider_than_the_screen(open_page, kind, width):
    page = open_page(kind, viewport={"width": width, "height": 800})
    unfold(page)
    wider = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wider <= 0


def test_names_are_shown_as_text(open_page):
    page = open_page()
    names = page.locator("#by-class tbody th .name").all_inner_texts()
    assert {" ".join(name.split()) for name in names} >= {
        " ".join(name.split()) for name in HOSTILE
    }
    assert page.locator("img, b:not(.cards b)").count() == 0


def test_tables_sort_by_value_and_by_name(open_page):
    page = open_page()
    header = page.locator("#by-class thead th").nth(1)
    button = header.locator("button")
    button.focus()

    def rows():
        cells = page.locator("#by-class tbody tr td:nth-of-type(1)").all_inner_texts()
        return [int(re.match(r"[\d,]+", cell)[0].replace(",", "")) for cell in cells]

    before = rows()
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending" and rows() == sorted(before)
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"
    assert rows() == sorted(before, reverse=True)
    name = page.locator("#by-class thead th").first
    name.locator("button").click()
    assert header.get_attribute("aria-sort") is None
    assert name.get_attribute("aria-sort") == "ascending"


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
    assert {"skip", "sort"} <= reached
    assert any("scroll" in each for each in reached) and any("copy" in each for each in reached)
    page.keyboard.press("Home")
    page.evaluate("document.body.focus()")


def test_focus_can_be_seen(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["x"] >= 0
    for _ in range(12):
        page.keyboard.press("Tab")
        width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert float(width.removesuffix("px")) >= 1


def test_printing_unfolds_everything_and_hides_what_paper_cannot_do(open_page):
    page = open_page()
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("details pre").first.is_visible()
    assert not page.locator(".copy").first.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert len(page.pdf()) > 10_000


def test_the_page_is_whole_without_a_script(browser, address, comparison):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address("hostile"))
    summary = comparison.to_dict()
    body = page.locator("body").inner_text()
    assert "Use a linear model" in body and summary["code"].splitlines()[0] in body
    kept = [each for each in summary["candidates"] if each["same_as"] is None]
    assert page.locator("#chart .field use").count() == len(kept)
    assert page.locator(".cards > li").count() == len(summary["cards"])
    context.close()


# What a reader sees first


@pytest.mark.parametrize("kind", ["hostile", "ordinary", "metric"])
def test_the_first_screen_says_what_is_gained_what_it_costs_and_what_to_type(open_page, kind):
    page, summary = open_page(kind), comparison_of(kind).to_dict()
    best = summary["candidates"][summary["recommendation"]["candidate"]]
    card = page.locator(".cards .advised")
    assert card.count() == 1
    for part in ("#answer h2", "#chart .field", ".cards .advised"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0 and box["y"] < DESK["height"] * 0.95
    text = card.inner_text()
    assert f"{best['overall']:.1%}" in text and f"{best['worst']:.1%}" in text
    line = summary["cards"][summary["recommendation"]["card"]]["line"]
    assert page.locator("#reasons code").inner_text() == line
    assert page.locator("#reasons").bounding_box()["y"] < DESK["height"] / 2


def test_the_points_of_the_chart_are_where_the_numbers_say(open_page):
    page, summary = open_page("ordinary"), comparison_of("ordinary").to_dict()
    kept = [each for each in summary["candidates"] if each["same_as"] is None]
    found = page.locator("#chart .field use").evaluate_all(
        "e => e.map(u => [parseFloat(u.getAttribute('x')), parseFloat(u.getAttribute('y'))])"
    )
    for axis, name, sign in ((0, "overall", 1), (1, "worst", -1)):
        places = np.array(sorted(each[axis] for each in found))[::sign]
        values = np.array(sorted(each[name] for each in kept))
        if np.ptp(values) > 0:
            slope = np.polyfit(values, places, 1)
            assert np.allclose(np.polyval(slope, values), places, atol=0.02)


def test_classes_of_few_rows_are_named_beside_the_advice(open_page):
    few = open_page("ordinary").locator("#few").inner_text()
    assert "embezzlement" in few and "8 held-out rows" in few and "kidnapping" in few


def test_equal_candidates_are_one_row(open_page):
    page, summary = open_page("ordinary"), comparison_of("ordinary").to_dict()
    same = [each for each in summary["candidates"] if each["same_as"] is not None]
    assert same
    rows = page.locator("#candidates tbody tr")
    assert rows.count() == len(summary["candidates"]) - len(same)
    assert "same predictions" in page.locator("#candidates").inner_text()
    page.locator("#candidates thead th button").nth(2).click()
    values = [float(row.locator("td").nth(1).get_attribute("data-value")) for row in rows.all()]
    assert values == sorted(values)


def test_what_failed_is_said_to_have_failed(open_page):
    page = open_page("failed")
    assert page.locator("#answer h2").inner_text() == "No model tried is an answer"
    assert "always predicting" in page.locator("#failed").inner_text()
    assert page.locator(".cards .advised").count() == 0


def test_the_confusion_matrix_holds_the_counts(open_page):
    page, summary = open_page("ordinary"), comparison_of("ordinary").to_dict()
    cells = page.locator("#confusion td").all_inner_texts()
    shown = sum(int(cell.split()[0].replace(",", "")) for cell in cells)
    assert shown == sum(map(sum, summary["confusion"])) == summary["design"]["evaluated"]


def open_changed(browser, folder, kind, change):
    """The page of a summary with something else in it."""
    summary = comparison_of(kind).to_dict()
    change(summary)
    page = browser.new_context().new_page()
    page.goto(Comparison(summary).save(folder / "page.html").as_uri())
    return page


def test_an_interrupted_comparison_says_so_at_the_top(browser, tmp_path):
    def interrupt(summary):
        summary["design"]["unfinished"] = ["forest, plain", "forest, <b>"]

    page = open_changed(browser, tmp_path, "metric", interrupt)
    said = page.locator("header .warn").inner_text()
    assert "Interrupted" in said and "forest, plain" in said and "forest, <b>" in said
    page.context.close()


def test_hostile_names_of_models_are_text(open_page):
    page = open_page("stranger", viewport=PHONE)
    models = page.locator("#candidates tbody th > .name").all_inner_texts()
    assert {" ".join(name.split()) for name in models} == {
        " ".join(name.split()) for name in HOSTILE
    }
    assert page.locator("img, b:not(.cards b)").count() == 0


# Names, marks and axes

BROKEN = r"""() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode()) {
        const node = walk.currentNode, skipped = 'script, style, pre, .long, .visually-hidden, .of';
        if (node.parentElement.closest(skipped)) continue;
        for (const word of node.data.matchAll(/[^\s…-]+-?/g)) {
            if (word[0].length > 20) continue;
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            const lines = new Set([...range.getClientRects()].map(e => Math.round(e.top)));
            if (lines.size > 1) found.push(word[0]);
        }
    }
    return found;
}"""


@pytest.mark.parametrize("kind", ["ordinary", "failed", "metric"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_word_is_broken(open_page, kind, width):
    page = open_page(kind, viewport={"width": width, "height": 844})
    unfold(page)
    assert page.evaluate(BROKEN) == []


# Code


def test_code_and_command_are_copied_each_by_its_own_button(browser, tmp_path):
    command = "equipoise fit 'a table.csv' --target y --goal worst_class --out model.equipoise"
    page = open_changed(
        browser, tmp_path, "metric", lambda summary: summary.update(command=command)
    )
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => "
        "{ window.copied = text; }}});"
    )
    page.reload()
    code = comparison_of("metric").code
    for button, text in (("#copy-snippet", code), ("#copy-command", command)):
        page.locator(button).focus()
        page.keyboard.press("Enter")
        page.wait_for_function("window.copied !== undefined")
        assert page.evaluate("window.copied") == text
        assert page.locator("#copied").inner_text() == "Copied."
        page.evaluate("delete window.copied")
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", ["hostile", "ordinary", "failed", "stranger"])
def test_axe_finds_no_barrier(open_page, scheme, width, kind):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 900}
    page = open_page(kind, color_scheme=scheme, viewport=size, bypass_csp=True)
    unfold(page)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    results = axe.Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
    found = [
        (violation["id"], [node["target"] for node in violation["nodes"]][:5])
        for violation in results.response["violations"]
    ]
    assert found == []
