"""Other libraries take tuned weights where docs/guide/weights-elsewhere.md says so."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from equipoise import class_risks, tune_weights

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], [900, 100])
X = rng.normal(size=(1_000, 2)) + 1.5 * Y[:, None]
NAMES = np.array(["common", "rare"])[Y]
ODD = np.arange(len(Y)) % 2 == 1


@pytest.fixture(scope="module")
def weights():
    """Weights tuned on one half of the rows for the worst class, by class name."""
    plain = LogisticRegression().fit(X[~ODD], NAMES[~ODD])
    tuned = tune_weights(NAMES[ODD], plain.predict_proba(X[ODD]), "worst_class")
    weights = tuned.weights.to_dict()
    assert weights["rare"] > 3 * weights["common"]
    return weights


def recall_of_rare(model, labels):
    predicted = np.ravel(model.fit(X[~ODD], labels[~ODD]).predict(X[ODD]))
    return class_risks(labels[ODD], predicted).recall()[labels[-1]]


def raised(plain, weighted, labels=NAMES):
    """Whether a model finds more of the rare class with the weights than without."""
    return recall_of_rare(weighted, labels) > recall_of_rare(plain, labels)


def test_scikit_learn_takes_them(weights):
    assert raised(LogisticRegression(), LogisticRegression(class_weight=weights))


def test_lightgbm_takes_them(weights):
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"n_estimators": 20, "n_jobs": 1, "verbose": -1}
    plain = lightgbm.LGBMClassifier(**settings)
    assert raised(plain, lightgbm.LGBMClassifier(class_weight=weights, **settings))


def test_catboost_takes_them(weights):
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 20, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    plain = catboost.CatBoostClassifier(**settings)
    assert raised(plain, catboost.CatBoostClassifier(class_weights=weights, **settings))


def test_xgboost_takes_their_ratio(weights):
    xgboost = pytest.importorskip("xgboost")
    settings = {"n_estimators": 20, "n_jobs": 1}
    ratio = weights["rare"] / weights["common"]
    plain = xgboost.XGBClassifier(**settings)
    assert raised(plain, xgboost.XGBClassifier(scale_pos_weight=ratio, **settings), Y)


def test_pytorch_takes_them(weights):
    torch = pytest.importorskip("torch")
    rows, labels = torch.tensor(X[~ODD], dtype=torch.float32), torch.tensor(Y[~ODD])
    found = []
    for weight in (None, torch.tensor(list(weights.values()), dtype=torch.float32)):
        torch.manual_seed(0)
        layer = torch.nn.Linear(2, 2)
        optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=50)
        loss = torch.nn.CrossEntropyLoss(weight=weight)

        def step(layer=layer, optimiser=optimiser, loss=loss):
            optimiser.zero_grad()
            value = loss(layer(rows), labels)
            value.backward()
            return value

        optimiser.step(step)
        predicted = layer(torch.tensor(X[ODD], dtype=torch.float32)).argmax(dim=1).numpy()
        found.append(class_risks(Y[ODD], predicted).recall()[1])
    assert found[1] > found[0]
