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
    "motor vehicle theft": 160, "assault": 120, "burglary": 100, "fraud": 80, "vandalism": 60,
    "arson": 40, "disorderly conduct": 40, "trespassing": 30, "embezzlement": 8, "kidnapping": 1,
}  # fmt: skip


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
    assert page.title() == "Which class weights?"
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
    names = page.locator("#classes tbody th .name").all_inner_texts()
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


@pytest.mark.parametrize("kind", ["hostile", "ordinary"])
def test_choices_can_be_drawn_and_left_out(open_page, kind):
    page = open_page(kind)
    more = page.locator("#chips summary")
    if more.count():
        more.focus()
        page.keyboard.press("Enter")
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
    costs = comparison.to_dict()["costs"]
    heads = [
        " ".join(text.split()) for text in page.locator("#cost-table thead th").all_inner_texts()
    ]
    assert heads[:2] == ["choice", "largest regret"]
    order = [[world["name"] for world in costs["worlds"]].index(name) for name in heads[2:]]
    rows = page.locator("#cost-table tbody tr:not(.model)")
    for place, regrets in enumerate(costs["regret"]):
        shown = rows.nth(place).locator("td").all_inner_texts()
        told = ["best" if regrets[at] == 0 else f"+{100 * regrets[at]:.1f}" for at in order]
        assert shown == [f"{100 * costs['largest_regret'][place]:.1f}", *told]
    page.locator("#cost-table thead th button").nth(2).click()
    values = [float(row.locator("td").nth(1).get_attribute("data-value")) for row in rows.all()]
    assert values == sorted(row[order[0]] for row in costs["regret"])


def test_sorted_costs_say_the_model_in_every_row(open_page):
    page = open_page("ordinary")
    summary = comparison_of("ordinary").to_dict()
    groups = page.locator("#cost-table tr.model")
    models = list(dict.fromkeys(each["model"] for each in summary["choices"]))[:-1]
    assert sorted(groups.all_inner_texts()) == sorted(models)
    chosen = summary["choices"][summary["recommendation"]["choice"]]
    assert groups.first.inner_text() == chosen["model"]
    page.locator("#cost-table thead th button").nth(1).click()
    rows = page.locator("#cost-table tbody tr:not(.model)")
    values = [float(row.locator("td").first.get_attribute("data-value")) for row in rows.all()]
    assert values == sorted(values)
    assert not groups.first.is_visible()
    best = min(summary["choices"], key=lambda each: each["largest_regret"])
    assert rows.first.locator("th").inner_text().startswith(best["label"])


def test_costs_that_are_no_goal_stand_beside(open_page):
    page = open_page("metric")
    choice = comparison_of("metric").to_dict()["choices"][0]
    heads = page.locator("#cost-table thead th").all_inner_texts()
    assert heads == [
        "choice",
        "largest regret",
        "f1_macro",
        "overall errors",
        "worst class",
        "balanced",
    ]
    page.locator("#cost-kind input").nth(1).click()
    shown = page.locator("#cost-table tbody tr:not(.model)").first.locator("td").all_inner_texts()
    assert shown[2:] == [f"{choice[kind]:.1%}" for kind in ("standard", "worst", "balanced")]


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
    assert page.locator("#bars .fill").count() == len(summary["path"]["classes"])
    assert page.locator("#dots li:not(.off)").first.is_visible()
    context.close()


# What a reader sees first


def test_the_answer_says_what_it_adds_and_which_classes_do_not_decide(open_page):
    page, summary = open_page("ordinary"), comparison_of("ordinary").to_dict()
    card = page.locator("#answer")
    assert card.locator("#sanity").inner_text() == summary["recommendation"]["sanity"]
    few = card.locator("#few").inner_text()
    assert "embezzlement" in few and "8 rows" in few and "(1 row)" in few
    (with_all,) = [
        each["text"] for each in summary["trust"] if each["heading"] == "With all classes"
    ]
    assert with_all in few
    text = card.inner_text()
    assert text.index("The regret is") < text.index("Why"), "explained where it first appears"


def test_few_choices_are_drawn_at_first_and_fill_no_screen(open_page):
    page, summary = open_page("ordinary", viewport=PHONE), comparison_of("ordinary").to_dict()
    boxes = page.locator("#chips input")
    shown = [box for box in boxes.all() if box.is_visible()]
    first = {summary["recommendation"][name] for name in ("choice", "best_plain", "plain")}
    assert {int(box.get_attribute("value")) for box in shown} == first
    assert all(box.is_checked() for box in shown)
    assert page.locator("#chips").bounding_box()["height"] < PHONE["height"] / 2
    kept = [at for at, each in enumerate(summary["choices"]) if each["same_as"] is None]
    assert boxes.count() == len(kept) > 2 * len(first)


def test_choices_that_decide_alike_are_one_row_with_the_reason(open_page):
    page, summary = open_page("ordinary"), comparison_of("ordinary").to_dict()
    same = [each for each in summary["choices"] if each["same_as"] is not None]
    assert same
    rows = page.locator("#cost-table tbody tr:not(.model)")
    assert rows.count() == len(summary["choices"]) - len(same)
    said = page.locator("#costs .notes").inner_text().translate({0x2068: None, 0x2069: None})
    assert f"“{same[0]['label']}” decides every row as “" in said
    alike = page.locator("#cost-table .also")
    assert alike.count() == len({each["same_as"] for each in same})
    assert same[0]["label"] in alike.first.inner_text()


def test_what_failed_is_said_to_have_failed_and_why(open_page):
    page, summary = open_page("failed"), comparison_of("failed").to_dict()
    assert summary["recommendation"]["failed"]
    assert page.locator("#answer h2").inner_text() == "No model tried is an answer"
    assert page.locator(".tag.recommended").count() == 0 and page.locator("#slider").count() == 0
    rows = page.locator("#cost-table tbody tr:not(.model)")
    assert page.locator("#cost-table .tag.failed").count() == rows.count()
    for reason in summary["choices"][0]["failures"]:
        assert reason in page.locator("#costs .notes").inner_text()


def test_the_slider_starts_at_what_is_recommended(open_page):
    page, path = open_page("ordinary"), comparison_of("ordinary").to_dict()["path"]
    assert int(page.locator("#alpha").input_value()) == path["start"] > 0
    assert state(page)["standard"] == f"{path['standard'][path['start']]:.1%}"
    assert page.locator(".plane .recommended").count() == 1


def open_changed(browser, folder, kind, change):
    """The page of a summary with something else in it."""
    summary = comparison_of(kind).to_dict()
    change(summary)
    page = browser.new_context().new_page()
    page.goto(Comparison(summary).save(folder / "page.html").as_uri())
    return page


def test_an_interrupted_comparison_says_so_at_the_top(browser, tmp_path):
    def interrupt(summary):
        summary["design"]["unfinished"], summary["path"] = ["forest, plain", "forest, <b>"], None

    page = open_changed(browser, tmp_path, "metric", interrupt)
    said = page.locator("header .warn").inner_text()
    assert "Interrupted" in said and "forest, plain" in said and "forest, <b>" in said
    assert page.locator("#slider").count() == page.locator('a[href="#slider"]').count() == 0
    page.locator("#cost-table thead th button").first.click()
    assert page.locator("#cost-table.flat").count() == 1, "the rest of the page works"
    page.context.close()


def test_a_slider_without_a_start_begins_at_the_left(browser, tmp_path):
    page = open_changed(
        browser, tmp_path, "metric", lambda summary: summary["path"].update(start=None)
    )
    assert page.locator("#alpha").input_value() == "0" and state(page)["alpha"] == "1"
    assert "starts where" not in page.locator("#slider").inner_text()
    page.context.close()


def test_hostile_names_of_models_are_text(open_page):
    page = open_page("stranger", viewport=PHONE)
    models = page.locator("#cost-table tr.model").all_inner_texts()
    assert {" ".join(name.split()) for name in models} == {
        " ".join(name.split()) for name in HOSTILE
    }
    assert page.locator("img, b:not(#now-cap)").count() == 0


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


def ticks(page, where):
    found = [
        (
            float(each.get_attribute("y" if where.endswith(".y") else "x").rstrip("%")),
            each.text_content(),
        )
        for each in page.locator(f"{where} text").all()
    ]
    return [at for at, _ in found], [float(text.rstrip("%")) for _, text in found]


def assert_round(page, where):
    """At least two ticks, as far from each other as they say, at steps of 1, 2, 2.5 or 5."""
    places, values = ticks(page, where)
    steps, gaps = np.diff(values), np.diff(places)
    assert len(values) >= 2 and np.allclose(steps, steps[0], atol=1e-9), values
    assert np.allclose(gaps, gaps[0], atol=0.01)
    first = f"{steps[0]:e}".split("e")[0].rstrip("0").rstrip(".")
    assert first in ("1", "1.5", "2", "2.5", "3", "4", "5"), values
    assert np.allclose(np.array(values) / steps[0], np.round(np.array(values) / steps[0]))


@pytest.mark.parametrize("kind", ["hostile", "ordinary", "metric"])
def test_ticks_are_round(open_page, kind):
    page = open_page(kind)
    unfold(page)
    for where in ("#dots .ticks", "#bars .ticks", ".plane .ticks", ".plane .y"):
        assert_round(page, where)
    for box in page.locator("#chips input").all():
        box.click()
        if page.locator("#chips input:checked").count():
            assert_round(page, "#dots .ticks")


def test_the_axis_holds_what_is_drawn(open_page):
    page, summary = open_page("ordinary"), comparison_of("ordinary").to_dict()
    unfold(page)
    for box in page.locator("#chips input").all():
        box.set_checked(False)
    ends = []
    for box in page.locator("#chips input").all():
        box.set_checked(True)
        choice = summary["choices"][int(box.get_attribute("value"))]
        top = ticks(page, "#dots .ticks")[1][-1] / 100
        ends.append(top)
        assert top >= max(each["upper"] for each in choice["classes"])
        lines = page.locator(f'#dots [data-choice="{box.get_attribute("value")}"] use')
        for line, each in zip(lines.all(), choice["classes"], strict=True):
            at = float(line.get_attribute("x").rstrip("%"))
            assert at == pytest.approx(100 * each["risk"] / top, abs=0.01)
        box.set_checked(False)
    assert ends and all(0 < end <= 1 for end in ends)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_of_different_choices_differ(open_page, scheme):
    page = open_page("ordinary", color_scheme=scheme)
    marks = page.locator("#chips .key").evaluate_all(
        """each => each.map(key => {
            const use = key.querySelector('use'), style = getComputedStyle(use);
            return [use.getAttribute('href'), style.stroke, style.fill,
                    Boolean(key.querySelector('.core'))].join(' ');
        })"""
    )
    assert len(marks) > 6 and len(set(marks)) == len(marks)
    without_colour = {re.sub(r"rgb\([^)]*\) (rgb)", r"\1", mark) for mark in marks}
    assert len(without_colour) == len(marks), "nor do they differ by their colour alone"


# A phone


def test_on_a_phone_the_deciding_columns_come_first_and_the_others_are_announced(open_page):
    page = open_page("ordinary", viewport=PHONE)
    region = page.locator("#costs .scroll")
    right = region.bounding_box()["x"] + region.bounding_box()["width"]
    heads = page.locator("#cost-table thead th")
    names = heads.all_inner_texts()
    assert [" ".join(name.split()) for name in names[:4]] == [
        "choice", "largest regret", "standard", "worst class"
    ]  # fmt: skip
    fourth = heads.nth(3).bounding_box()
    assert fourth["x"] + fourth["width"] <= right + 1
    assert "scrolls" in region.get_attribute("class") and "cut" in region.get_attribute("class")
    cue = region.evaluate("e => getComputedStyle(e, '::before').content")
    assert "Scroll sideways" in cue
    region.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    page.wait_for_timeout(100)
    assert "cut" not in region.get_attribute("class").split()
    row = page.locator("#cost-table tbody th[scope=row]").first.bounding_box()
    assert row["x"] >= region.bounding_box()["x"] - 1, "the names stay in sight"


def test_a_desk_has_no_cue_where_all_is_seen(open_page):
    page = open_page("ordinary")
    assert "scrolls" not in page.locator("#costs .scroll").get_attribute("class").split()


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
    for button, text in (("#copy", comparison_of("metric").code), ("#copy-command", command)):
        page.locator(button).focus()
        page.keyboard.press("Enter")
        page.wait_for_function("window.copied !== undefined")
        assert page.evaluate("window.copied") == text
        assert page.locator("#copied").inner_text() == "Copied."
        page.evaluate("delete window.copied")
    page.context.close()


def test_without_a_command_there_is_one_button(open_page):
    assert open_page("ordinary").locator(".copy").count() == 1


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
