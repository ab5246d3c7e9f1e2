"""The picture at the top of the README and of the site: ``python docs/picture.py`` draws it.

Its numbers are read from what the study printed (``docs/studies/tuner.txt``, splits 4 and 5);
``tests/test_docs.py`` compares the committed file with what this script draws.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
PICTURE = HERE / "_static" / "worst-class.svg"

LEARNERS = {
    "logistic": "logistic regression",
    "forest": "random forest",
    "boosting": "gradient boosting",
}
RULES = {
    "default": "default predictions",
    "class_weight": 'class_weight="balanced"',
    "inverse shares": "probabilities / class shares",
    "average": "RobustClassifier",
}

# In pixels; narrow enough to be read on a phone. LEFT and TOP: where bars begin; BAR: the height of
# a bar; STEP and GROUP: the distance between bars and between learners.
WIDTH, HEIGHT = 480, 412
LEFT, TOP = 206, 96
BAR, STEP, GROUP = 13, 19, 106
PIXELS_PER_POINT = 2.9

STYLE = """
.card{fill:#ffffff;stroke:#d5d9dd} text{fill:#222222;font:14px system-ui,sans-serif}
.title{font-size:16px;font-weight:600} .small{font-size:13px}
.strong{font-weight:600} .end{text-anchor:end}
.default{fill:#a3abb5} .class_weight{fill:#d1603d} .inverse{fill:#e0a458} .average{fill:#1f5f9e}
@media (prefers-color-scheme:dark){
.card{fill:#161b22;stroke:#3c4652} text{fill:#ced6dd}
.default{fill:#6f7984} .class_weight{fill:#f0885f} .inverse{fill:#d9a765} .average{fill:#8ab4f8}}
"""


def recalls() -> dict[tuple[str, str], float]:
    """Percent of the worst class that is recalled, mean over tables, by rule and learner."""
    study = (HERE / "studies" / "tuner.txt").read_text(encoding="utf-8")
    confirmed = study.split("# splits 4 and 5")[1].split("worst_class")[0]
    return {
        (rule, learner): float(re.search(rf"^  {rule} +{learner} +([\d.]+)", confirmed, re.M)[1])
        for rule in RULES
        for learner in LEARNERS
    }


def bars(group: int, learner: str, shown: dict[tuple[str, str], float]) -> list[str]:
    """One learner: a bar for each rule, its name on the left and its number on the right."""
    top = TOP + group * GROUP
    parts = [f'<text class="strong" x="20" y="{top - 8}">{LEARNERS[learner]}</text>']
    for at, (rule, name) in enumerate(RULES.items()):
        y, length = top + at * STEP, PIXELS_PER_POINT * shown[rule, learner]
        strong = " strong" if rule == "average" else ""
        parts += [
            f'<text class="small end{strong}" x="{LEFT - 8}" y="{y + 11}">{name}</text>',
            f'<rect class="{rule.split()[0]}" x="{LEFT}" y="{y}" '
            f'width="{length:.1f}" height="{BAR}" rx="2"/>',
            f'<text class="small{strong}" x="{LEFT + length + 6:.1f}" y="{y + 11}">'
            f"{shown[rule, learner]:.1f}%</text>",
        ]
    return parts


def draw() -> str:
    """The picture as SVG; it has a ground of its own, which is dark where the reader's is."""
    shown = recalls()
    parts = [part for at, name in enumerate(LEARNERS) for part in bars(at, name, shown)]
    title, note = "Recall of the worst class on new rows", "mean of 91 real data sets"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}, {note}">',
            f"<style>{STYLE}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" '
            f'height="{HEIGHT - 1}" rx="8"/>',
            f'<text class="title" x="20" y="32">{title}</text>',
            f'<text x="20" y="53">{note}</text>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
