"""A new user finds the right page of the built site: by one search, or by two clicks.

The searches are typed into the site's own search, in a browser; the clicks are links of the landing
page and of the pages that it links to.
"""

import os
import re
from pathlib import Path

import pytest

from served_site import CHROMIUM, FLAGS, SITE, served, why_not

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if why_not():
    pytest.skip(why_not(), allow_module_level=True)

# A page that answers must be among the first three results.
FIRST = 3
# What a new user wants, what they may type, and the pages that answer.
TASKS = {
    "my model never predicts the rare class": (
        ["never predicts the rare class", "predicts only the majority class"],
        ["guide/questions.html"],
    ),
    "is it worth weighting at all": (
        ["is it worth weighting", "imbalanced classification"],
        ["guide/should-i-weight.html"],
    ),
    "false alarms cost 1, misses 20": (
        ["false alarms cost", "cost sensitive"],
        ["guide/costs.html"],
    ),
    "a set of labels instead of one": (
        ["set of labels", "prediction sets"],
        ["guide/prediction-sets.html"],
    ),
    "rows that do not fit in memory": (
        ["rows do not fit in memory", "out of memory"],
        ["guide/larger-than-memory.html"],
    ),
    "find at least 90% of the fraud": (
        ["recall at least 90%", "fraud recall", "find 90% of the ill"],
        ["guide/recall-floors.html", "guide/fraud.html"],
    ),
    "replace class_weight='balanced'": (
        ['class_weight="balanced"', "class_weight balanced"],
        ["guide/from-balanced.html"],
    ),
    "thresholds for three classes": (
        ["multiclass thresholds", "threshold for each class"],
        ["guide/multiclass-thresholds.html"],
    ),
    "calibrated probabilities after weighting": (
        ["calibrated probabilities", "probabilities after weighting"],
        ["guide/should-i-weight.html"],
    ),
    "weights for LightGBM, XGBoost, YOLO": (
        ["yolo", "rare class YOLO", "weights for XGBoost", "LightGBM weights"],
        ["guide/weights-elsewhere.html"],
    ),
    "class frequencies that change": (
        ["frequencies change in production", "prior shift"],
        ["guide/shifting-frequencies.html"],
    ),
    "a thousand classes": (["1000 classes", "many classes"], ["guide/thousands-of-classes.html"]),
    "a metric of my own": (["custom metric", "own metric"], ["guide/own-metric.html"]),
    "a report on my own models": (["report own models", "compare models"], ["guide/reports.html"]),
    "grouped data": (
        ["grouped data", "groups of patients", "time-ordered data"],
        ["guide/groups-and-time.html"],
    ),
}
# Words that people search for, and a page that answers.
WORDS = {
    "imbalanced": "guide/should-i-weight.html",
    "threshold": "guide/multiclass-thresholds.html",
    "calibration": "guide/should-i-weight.html",
    "rare class": "guide/recall-floors.html",
    "recall at least": "guide/recall-floors.html",
    "single-cell": "guide/millions-of-rows.html",
    "SMOTE": "guide/other-packages.html",
    "RobustClassifier": "api/generated/equipoise.RobustClassifier.html",
}


@pytest.fixture(scope="module")
def search():
    """Types a query into the search of the site; returns addresses and texts of the results."""
    with served() as address, sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = chromium.new_page()

        def typed(query):
            page.goto(f"{address}index.html")
            page.locator(".search-button:visible, .search-button-field:visible").first.click()
            page.keyboard.type(query)
            page.keyboard.press("Enter")
            page.wait_for_url("**/search.html*")
            page.locator("#search-results li").nth(0).wait_for()
            # Results come one after the other, excerpts after them.
            page.locator(".search-summary", has_text=re.compile("found")).wait_for()
            page.wait_for_load_state("networkidle")
            results = page.locator("#search-results li")
            links = [link.get_attribute("href") for link in results.locator("a").all()]
            return [link.partition("#")[0] for link in links], results.all_inner_texts()

        yield typed
        chromium.close()


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        *((query, pages) for queries, pages in TASKS.values() for query in queries),
        *((word, [page]) for word, page in WORDS.items()),
    ],
)
def test_one_search_finds_a_page_that_answers(search, query, answers):
    links, _ = search(query)
    assert set(links[:FIRST]) & set(answers), links[:10]


@pytest.mark.parametrize("query", ["threshold", "regret", "margin", "worst-case weights"])
def test_excerpts_are_sentences(search, query):
    links, texts = search(query)
    assert len(links) > 3
    assert not [text for text in texts if re.search(r"\\[a-zA-Z(\[]|\$\$|>>> ", text)]


def links_of(page):
    """Pages of the site that a page links to."""
    text = (SITE / page).read_text(encoding="utf-8")
    for link in re.findall(r'<a\b[^>]*\bhref="([^"#?:]+\.html)', text):
        yield os.path.normpath(Path(page).parent / link)


@pytest.mark.parametrize("task", TASKS)
def test_two_clicks_reach_a_page_that_answers(task):
    first = set(links_of("index.html"))
    second = {each for page in first for each in links_of(page)}
    assert "guide/index.html" in first
    assert set(TASKS[task][1]) <= first | second
    # The row of the guide says so in the words of the problem.
    assert set(TASKS[task][1]) & set(links_of("guide/index.html"))
