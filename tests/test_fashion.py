"""Three classes of Fashion-MNIST: read whole or refused, C chosen on training rows alone."""

import gzip

import numpy as np
import pytest

from equipoise.exceptions import InvalidInputError
from equipoise.paper import reproduce, splits
from equipoise.paper.fashion import OBJECTIVES, TUNED, chosen_records
from equipoise.paper.splits import FASHION_CLASSES, Sources, Split, read_idx

pytest.importorskip("matplotlib")

KINDS = ("images-idx3", "labels-idx1")
FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in KINDS]
HOW = {"Cs": [0.01, 0.1, 1.0], "folds": 3, "seed": 0}


def _write_idx(file, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    file.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without the data."""
    monkeypatch.setattr(splits, "_FASHION_FOLDER", tmp_path / "none")
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)


@pytest.fixture
def small(monkeypatch, nowhere, tmp_path):
    """A folder with images of ten classes, 30 of each to train and 20 to test; and their arrays."""
    counts, rng, arrays = {"train": 30, "t10k": 20}, np.random.default_rng(0), {}
    monkeypatch.setattr(splits, "_FASHION_PARTS", counts)
    for place, (part, count) in enumerate(counts.items()):
        labels = rng.permutation(np.repeat(np.arange(10), count))
        # Every class is bright in rows of its own.
        images = rng.integers(0, 120, size=(10 * count, 28, 28))
        images[np.arange(10 * count), 2 * labels] += 100
        arrays[part] = images, labels
        for name, array in zip(FILES[2 * place :], arrays[part], strict=False):
            _write_idx(tmp_path / name, array)
    return tmp_path, arrays


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_three_classes_are_read_from_a_folder(small, by_variable, monkeypatch):
    folder, arrays = small
    if by_variable:
        monkeypatch.setenv("EQUIPOISE_DATA", str(folder))
    split = Sources(None if by_variable else folder).fashion
    for part, X, y in (("train", split.X, split.y), ("t10k", split.X_test, split.y_test)):
        images, labels = arrays[part]
        kept = (labels == 0) | (labels == 2) | (labels == 6)
        assert y.tolist() == labels[kept].tolist()
        assert X.shape == (kept.sum(), 784)
        assert np.array_equal(np.rint(255 * X).reshape(-1, 28, 28), images[kept])


def test_without_the_data_it_says_how_to_get_them(nowhere, tmp_path):
    with pytest.raises(FileNotFoundError, match="dataset-fashion-mnist"):
        reproduce("fashion", out=tmp_path, quick=True)


@pytest.mark.parametrize("missing", FILES)
def test_a_folder_that_lacks_a_file_is_none(small, missing):
    (small[0] / missing).unlink()
    with pytest.raises(FileNotFoundError, match="EQUIPOISE_DATA"):
        Sources(small[0]).fashion  # noqa: B018


def test_other_images_are_refused(small):
    folder, arrays = small
    images, labels = arrays["train"]
    _write_idx(folder / FILES[1], np.where(labels == 3, 4, labels))
    with pytest.raises(InvalidInputError, match="must hold Fashion-MNIST"):
        Sources(folder).fashion  # noqa: B018
    _write_idx(folder / FILES[1], labels)
    _write_idx(folder / FILES[0], images[:, :27])
    with pytest.raises(InvalidInputError, match=r"got images of shape \(300, 27, 28\)"):
        Sources(folder).fashion  # noqa: B018


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: gzip.compress(content)[:-20],
        lambda content: content,
        lambda content: gzip.compress(content[:-1]),
        lambda content: gzip.compress(content + b"\0"),
        lambda content: gzip.compress(content[:6]),
        lambda content: gzip.compress(b"\0\0\x0d" + content[3:]),
        lambda content: gzip.compress(b""),
    ],
    ids=["cut", "not gzip", "short", "long", "head only", "floats", "empty"],
)
def test_a_damaged_file_is_refused(damage, tmp_path):
    whole = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(6)])
    (tmp_path / "file").write_bytes(gzip.compress(whole))
    assert read_idx(tmp_path / "file").tolist() == [[0, 1, 2], [3, 4, 5]]
    (tmp_path / "file").write_bytes(damage(whole))
    with pytest.raises(InvalidInputError, match="get it again"):
        read_idx(tmp_path / "file")


def _drawn(n_rows, seed):
    """Three classes on a line, the third between the others.

    The best thresholds err on 53% of it and on 27% of each of the others; at equal errors all have
    37%.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(list(FASHION_CLASSES), n_rows // 3))
    centre = np.select([y == 0, y == 2], [-1.0, 1.0], 0.0)
    return centre[:, None] + rng.normal(0, 0.8, size=(len(y), 1)), y


@pytest.fixture(scope="module")
def drawn():
    split = Split(*_drawn(3_000, 0), *_drawn(3_000, 1))
    found = [r for name in OBJECTIVES for r in chosen_records(split, objective=name, **HOW)]
    return split, {record["method"]: record for record in found}


def test_records_hold_certificates_and_the_errors_of_every_class(drawn):
    _, found = drawn
    assert list(found) == [
        *("plain", TUNED.format("plain"), "LCVaR(0.9)", "worst class", TUNED.format("worst class"))
    ]
    for name, record in found.items():
        risks = [record[f"risk[{label}]"] for label in FASHION_CLASSES]
        assert record["worst_class_risk"] == max(risks)
        assert record["worst_lower"] < max(risks) < record["worst_upper"]
        assert record["gap"] <= (1e-6 if name in OBJECTIVES else 1e-4)


def test_the_optimum_over_more_weightings_is_larger(drawn):
    split, how = drawn[0], HOW | {"Cs": [0.1]}
    plain, cvar, worst = (
        chosen_records(split, objective=name, **how)[0]["objective"] for name in OBJECTIVES
    )
    assert plain < worst * (1 - 1e-3)
    assert plain * (1 - 1e-6) <= cvar <= worst * (1 + 1e-6)


def test_the_worst_class_gains(drawn):
    # 17 points are expected; the standard error of the difference is at most 2.2.
    _, found = drawn
    assert found["worst class"]["worst_class_risk"] < found["plain"]["worst_class_risk"] - 0.08


def test_the_test_rows_decide_nothing_but_their_own_errors(drawn):
    split, found = drawn
    rng = np.random.default_rng(2)
    other = Split(split.X, split.y, split.X_test, rng.permutation(split.y_test))
    again = chosen_records(other, objective="worst class", **HOW)
    for record in again:
        before = found[record["method"]]
        same = [name for name in record if name in ("C", "objective", "gap") or "left_out" in name]
        assert [record[name] for name in same] == [before[name] for name in same]
        assert record["worst_class_risk"] > before["worst_class_risk"] + 0.2


def test_the_chosen_penalty_is_the_strongest_of_those_about_as_good_as_the_best(drawn):
    for name in OBJECTIVES:
        record = drawn[1][name]
        errors = {C: record[f"left_out[{C:g}]"] for C in HOW["Cs"]}
        assert record["C"] <= min(errors, key=errors.get)
        assert errors[record["C"]] < min(errors.values()) + 0.02


def test_the_page_is_made_of_a_small_folder(small, tmp_path):
    done = reproduce("fashion", quick=False, data=small[0], out=tmp_path / "out")
    assert all(claim.where == "beyond the paper" for claim in done.claims())
    page = (tmp_path / "out" / "fashion" / "README.md").read_text(encoding="utf-8")
    for name in (*OBJECTIVES, TUNED.format("plain"), TUNED.format("worst class")):
        assert f"| {name} |" in page
    assert "Training rows: 90; test rows: 60, equally" in page and "quoted from memory" in page
    assert (tmp_path / "out" / "fashion" / "accuracies.svg").is_file()


@pytest.mark.timeout(300)
def test_the_worst_class_is_fitted_to_its_certificate_on_the_images_themselves():
    try:
        split = Sources().fashion
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert split.X.shape == (18_000, 784) and split.X_test.shape == (3_000, 784)
    assert 0 == split.X.min() < split.X.max() == 1
    fifth = Split(split.X[::5], split.y[::5], split.X_test, split.y_test)
    (worst, _), (plain, _) = (
        chosen_records(fifth, objective=name, Cs=[0.01], folds=2, seed=0)
        for name in ("worst class", "plain")
    )
    assert worst["gap"] <= 1e-6 and plain["gap"] <= 1e-6
    assert worst["worst_class_risk"] < plain["worst_class_risk"]
