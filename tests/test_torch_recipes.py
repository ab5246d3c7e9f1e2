"""Recipes that run: a plain loop, Lightning, a Hugging Face Trainer, skorch (see docs/deep.md)."""

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

from equipoise import LabelCVaR  # noqa: E402
from equipoise.torch import RobustHead, RobustLoss, tune_decisions  # noqa: E402
from torch_cases import draw_rows  # noqa: E402

COUNTS = [300, 60, 40]

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages say of each other


def data(seed=0):
    X, labels = draw_rows(seed, COUNTS)
    return torch.tensor(X).float(), torch.tensor(labels)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))


def robust_risk(net, rows, labels):
    with torch.no_grad():
        return RobustLoss(LabelCVaR(0.2), COUNTS).eval()(net(rows), labels).item()


def test_a_plain_loop_lowers_the_robust_risk_more_than_cross_entropy_does():
    rows, labels = data()
    found = {}
    for name, loss in [
        ("robust", RobustLoss(LabelCVaR(alpha=0.2), COUNTS)),
        ("plain", nn.CrossEntropyLoss()),
    ]:
        net = network()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        loader = DataLoader(
            TensorDataset(rows, labels),
            20,
            shuffle=True,
            generator=torch.Generator().manual_seed(0),
        )
        for _ in range(20):
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss(net(inputs), targets).backward()
                optimizer.step()
        found[name] = robust_risk(net, rows, labels)
        if name == "robust":
            risks = [loss.class_risks[i] for i in range(3)]
            assert loss.robust_risk <= max(risks) and loss.worst_case_weights.max() <= 5 + 1e-9
    assert found["robust"] < found["plain"] - 0.02


def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning", exc_type=ImportError)

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()
            self.loss = RobustLoss(LabelCVaR(alpha=0.2), COUNTS)

        def training_step(self, batch):
            inputs, targets = batch
            return self.loss(self.network(inputs), targets)

        def on_train_epoch_end(self):
            for name, risk in self.loss.class_risks.items():
                self.log(f"risk/{name}", risk)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    rows, labels = data()
    model = Classifier()
    before = robust_risk(model.network, rows, labels)
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, DataLoader(TensorDataset(rows, labels), 20, shuffle=True))
    assert robust_risk(model.network, rows, labels) < before
    assert {"risk/0", "risk/1", "risk/2"} <= set(trainer.callback_metrics)
    # The loss is a part of the model: a checkpoint holds what it remembers.
    path = tmp_path / "model.ckpt"
    trainer.save_checkpoint(path)
    twin = Classifier.load_from_checkpoint(path)
    assert twin.loss.class_risks.to_dict() == model.loss.class_risks.to_dict()


def test_a_trainer_of_hugging_face(tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    pytest.importorskip("accelerate", exc_type=ImportError)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    class RobustTrainer(transformers.Trainer):
        def __init__(self, *args, robust_loss, **kwargs):
            super().__init__(*args, **kwargs)
            self.robust_loss = robust_loss.to(self.args.device)

        def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
            labels = inputs.pop("labels")
            outputs = model(**inputs)
            # The loss is not a part of the model: set its mode by hand.
            value = self.robust_loss.train(model.training)(outputs.logits, labels)
            return (value, outputs) if return_outputs else value

    class Sentences(Dataset):
        """Eight words a row; a class is known by the word that it uses often."""

        def __init__(self):
            rng = np.random.default_rng(0)
            self.labels = np.repeat([0, 1, 2], [90, 40, 20])
            self.words = rng.integers(3, 30, size=(150, 8))
            often = rng.random((150, 8)) < 0.4
            self.words[often] = np.repeat(self.labels[:, None], 8, axis=1)[often]

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, row):
            return {"input_ids": torch.tensor(self.words[row]), "labels": int(self.labels[row])}

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=8,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.BertForSequenceClassification(config)
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=8,
        per_device_train_batch_size=16,
        learning_rate=0.005,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    loss = RobustLoss("worst_class", [90, 40, 20])
    trainer = RobustTrainer(model=model, args=options, train_dataset=Sentences(), robust_loss=loss)
    trainer.train()
    assert loss.step.item() == 80 and loss.class_risks.max() < np.log(3) / 2
    assert trainer.evaluate(Sentences())["eval_loss"] > 0 and loss.step.item() == 80
    # And an exact last layer on the embeddings of this body.
    rows = DataLoader(Sentences(), 50)
    head = RobustHead("worst_class", layer="classifier").fit(model, rows)
    assert head.estimator_.status_ == "converged"
    assert tune_decisions(model, rows, "worst_class").log_weights.shape == (3,)


def test_skorch():
    skorch = pytest.importorskip("skorch", exc_type=ImportError)

    rows, labels = data()
    torch.manual_seed(0)
    net = skorch.NeuralNetClassifier(
        network,
        criterion=RobustLoss,
        criterion__goal=LabelCVaR(alpha=0.2),
        criterion__class_counts=np.bincount(labels),
        optimizer=torch.optim.Adam,
        lr=0.01,
        max_epochs=5,
        train_split=None,
        verbose=0,
    )
    net.fit(rows.numpy(), labels.numpy())
    assert net.predict(rows.numpy()).shape == (400,)
    assert robust_risk(net.module_, rows, labels) < robust_risk(network(), rows, labels)
    assert net.criterion_.step.item() == 20 and len(net.criterion_.class_risks) == 3


def test_the_page_shows_these_recipes():
    page = (Path(__file__).parents[1] / "docs" / "deep.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    here = re.sub(r"^ +", "", Path(__file__).read_text(encoding="utf-8"), flags=re.M)
    longest = [re.sub(r"^ +", "", block, flags=re.M) for block in blocks[4:]]
    assert [block.split("(")[0] for block in longest] == [
        "class Classifier",
        "class RobustTrainer",
        "net = skorch.NeuralNetClassifier",
    ]
    for block in longest:
        assert block in here
    for block in blocks[:4]:
        compile(block, "docs/deep.md", "exec")
