"""The page of errata names every place where the paper slips, and its numbers are right."""

import re
from pathlib import Path

import numpy as np
import pytest

from equipoise.decisions import select
from equipoise.theory import excess_risk

THEORY = Path(__file__).parents[1] / "docs" / "theory"
pytestmark = pytest.mark.skipif(not THEORY.is_dir(), reason="the pages are in the repository only")

# Where the paper slips, and what the right-hand column must speak of.
ERRATA = {
    "Section 5, data": "1 + p",
    "Appendix G.1": "R_{(s)}",
    "Algorithm 2": "onto $B$",
    "Appendix A.1": "d / \\beta",
    "Section 2.4": "with $1/n$",
    "proof of Proposition 2": "minus in place of plus",
    "proof of Proposition 2, first line": "R_{q'}(f^*_q) - R_{q'}(f^*_{q'})",
    "proof of Proposition 3": "\\le",
    "Proposition 3": "rate-optimal",
    "Figure 1": "integral",
    "Appendix A.2, both margin conditions": "0 <",
    "Appendix B, first line": "R_{q'}(f^*_{q'})",
    "Appendix B, excess $q$-risk": "R_q(f^*_q)",
    "Appendix B": "does not follow",
    "Appendix D": "4k",
    "two-sided lemma": "2k / \\delta",
    "Appendix A.3": "divided by",
    "Definition 4": "is empty",
    "Appendix E": "f(a_t, b^*)",
    "Theorem 1": "true",
    "Tables 1 and 2": "contradict",
    "Section 5, results": "0.80 to 0.98",
}


def rows_of_errata():
    lines = (THEORY / "errata.md").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r" \| ", line.strip("| ")) for line in lines if line.startswith("| ")]
    return [row for row in rows if len(row) == 3]


@pytest.mark.parametrize("where", ERRATA)
def test_every_erratum_has_its_row(where):
    found = [right for place, _, right in rows_of_errata() if place == where]
    assert any(ERRATA[where] in right for right in found), where


def test_the_third_line_of_the_proof_of_proposition_3_is_no_equality():
    # Between the thresholds a mistake under q helps under q'; the printed integral is positive.
    found = excess_risk([0.3, 0.1], [0.6, 0.1], "standard", "balanced")
    weights = found.evaluated_under
    printed = weights.sum() * abs(0.3 - weights[0] / weights.sum()) / 2
    assert found.estimation == pytest.approx(-printed) and printed > 0


def test_mass_at_the_threshold_keeps_the_second_term():
    # However near the estimate is, a tie decided otherwise costs |t_q - t_q'| under q'.
    for error in (0.1, 1e-3, 1e-9):
        found = excess_risk(np.array([0.5, 0.1]), np.array([0.5 + error, 0.1]), "standard", (1, 3))
        assert abs(found.estimation) == pytest.approx(found.evaluated_under.sum() * 0.25 / 2)


def test_the_page_says_within_how_many_standard_errors_the_simplest_is_taken():
    page = " ".join((THEORY / "what-we-add.md").read_text(encoding="utf-8").split())
    assert "of those within one standard error" in page
    # The first is as good as the last within one standard error, the second is not.
    without = np.array([[0.31, 0.33], [0.30, 0.30], [0.30, 0.28]])
    assert select(np.array([0.31, 0.31, 0.29]), without).close == (0, 2)
