"""The exact last layer and decision weights: in the network what the estimator is outside of it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from equipoise import LabelCVaR, RobustLogisticRegression, tune_weights  # noqa: E402
from equipoise.exceptions import InvalidInputError, InvalidParameterError  # noqa: E402
from equipoise.torch import DecisionWeights, RobustHead, RobustLoss, tune_decisions  # noqa: E402
from torch_cases import draw_rows  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::equipoise.exceptions.EquipoiseWarning")

COUNTS = [120, 60, 40]


class Network(nn.Module):
    """A body with dropout, and a head whose name is not the last."""

    def __init__(self, n_classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 6), nn.Dropout(0.5), nn.Tanh())
        self.head = nn.Linear(6, n_classes)

    def forward(self, rows):
        return self.head(self.body(rows))


def data(seed=0, counts=COUNTS):
    X, labels = draw_rows(seed, counts)
    return torch.tensor(X).float(), torch.tensor(labels)


def loader(seed=0, counts=COUNTS, **options):
    return DataLoader(TensorDataset(*data(seed, counts)), batch_size=32, **options)


def network(n_classes=3):
    torch.manual_seed(0)
    return Network(n_classes)


def logits_of(net, rows):
    net.eval()
    with torch.no_grad():
        return net(rows)


@pytest.mark.parametrize("counts", [[120, 60, 40], [120, 60]])
def test_the_layer_is_the_certified_optimum_on_the_embeddings(counts):
    net = network(len(counts))
    body = {name: each.clone() for name, each in net.body.state_dict().items()}
    head = RobustHead(LabelCVaR(0.3), C=0.1, tol=1e-8).fit(net, loader(counts=counts))
    rows, labels = data(counts=counts)
    net.eval()
    with torch.no_grad():
        embeddings = net.body(rows).numpy()
    scaled = (embeddings - embeddings.mean(0)) / embeddings.std(0)
    exact = RobustLogisticRegression(LabelCVaR(0.3), C=0.1, tol=1e-8).fit(scaled, labels.numpy())
    assert head.estimator_.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert head.estimator_.duality_gap_ <= 1e-8 * exact.objective_ * 1.01
    found = torch.softmax(logits_of(net, rows), 1).numpy()
    np.testing.assert_allclose(found, exact.predict_proba(scaled), atol=1e-4)
    # In eval the loss of the network is the robust risk of the estimator.
    value = RobustLoss(LabelCVaR(0.3), counts).eval()(logits_of(net, rows), labels)
    assert value.item() == pytest.approx(exact.robust_risk_, abs=1e-5)
    assert all(torch.equal(body[name], each) for name, each in net.body.state_dict().items())


@pytest.mark.parametrize("offset", [1.0, 1e3])
@pytest.mark.parametrize("goal", [None, "worst_class"])
def test_embeddings_far_from_zero_have_the_risk_of_the_certificate(offset, goal):
    rows, labels = data()
    rows = offset * (1 + 1e-6 * rows)  # in float32 there are a few values to each column
    net = nn.Sequential(nn.Identity(), nn.Linear(3, 3))
    batches = [(rows, labels)]
    head = RobustHead(LabelCVaR(0.3), C=0.1, decision_goal=goal).fit(net, batches, held_out=batches)
    logits = logits_of(nn.Sequential(head.centering_, head.linear_), rows)
    value = RobustLoss(LabelCVaR(0.3), COUNTS).eval()(logits, labels)
    assert value.item() == pytest.approx(head.estimator_.robust_risk_, abs=1e-5)
    decided = logits if goal is None else logits + head.decisions_.log_weights
    torch.testing.assert_close(logits_of(net, rows), decided)


def test_embeddings_near_zero_need_nothing_before_the_layer():
    assert RobustHead("balanced").fit(network(), loader()).centering_ is None


def test_modes_are_as_before_and_embeddings_without_dropout():
    net = network().train()
    net.body[2].eval()
    head = RobustHead("worst_class").fit(net, loader())
    assert net.training and net.body[1].training and not net.body[2].training
    assert net.head is head.linear_ and head.layer_ == "head"
    again = RobustHead("worst_class", layer="head").fit(network().train(), loader())
    torch.testing.assert_close(again.linear_.weight, head.linear_.weight)


def test_a_head_in_half_precision_stays_so():
    net = network().bfloat16()
    batches = [(rows.bfloat16(), labels) for rows, labels in loader()]
    RobustHead("balanced").fit(net, batches)
    assert net.head.weight.dtype == torch.bfloat16


def test_decision_weights_are_tuned_on_rows_held_out_and_added():
    net = network()
    head = RobustHead("standard", decision_goal="worst_class")
    head.fit(net, loader(), held_out=loader(1))
    rows, labels = data(1)
    plain = torch.log_softmax(logits_of(nn.Sequential(net.body, head.linear_), rows), 1)
    tuned = tune_weights(labels.numpy(), plain.double().exp().numpy(), "worst_class")
    np.testing.assert_allclose(
        np.asarray(head.decisions_.tuned.weights), np.asarray(tuned.weights), rtol=1e-4
    )
    decided = tuned.decide(plain.double().exp().numpy())
    np.testing.assert_array_equal(logits_of(net, rows).argmax(1).numpy(), decided)
    recalls = [np.mean(decided[labels == i] == i) for i in range(3)]
    before = [np.mean(plain.argmax(1).numpy()[labels == i] == i) for i in range(3)]
    assert min(recalls) > min(before)


def test_dicts_of_tensors_are_batches_too():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, pixels):
            return type("Output", (), {"logits": self.linear(pixels)})()

    rows, labels = data()
    torch.manual_seed(0)
    model = Model()
    RobustHead("balanced", layer="linear").fit(model, [{"pixels": rows, "labels": labels}])
    decide = tune_decisions(model, [{"pixels": rows, "labels": labels}], "worst_class")
    assert decide.log_weights.shape == (3,)


def test_what_cannot_be_fitted_is_told():
    with pytest.raises(InvalidInputError, match=r"each of the 3 classes .* got no rows of 2\."):
        RobustHead().fit(network(), loader(counts=[30, 20]))
    with pytest.raises(InvalidParameterError, match=r"part of the network .*'head'.* got 'fc'"):
        RobustHead(layer="fc").fit(network(), loader())
    with pytest.raises(InvalidParameterError, match="held_out must be given"):
        RobustHead(decision_goal="worst_class").fit(network(), loader())
    with pytest.raises(InvalidParameterError, match=r"has no nn\.Linear inside"):
        RobustHead().fit(nn.Linear(3, 3), loader())
    with pytest.raises(InvalidInputError, match="pair of inputs and targets"):
        RobustHead().fit(network(), [torch.zeros(2, 3)])
    with pytest.raises(InvalidInputError, match="at least one batch"):
        RobustHead().fit(network(), [])
    with pytest.raises(InvalidParameterError, match="none negative"):
        DecisionWeights([1.0, -1.0])


def test_a_class_of_weight_zero_is_never_decided():
    decide = DecisionWeights([1.0, 0.0])
    assert decide(torch.tensor([[0.0, 1e6]])).argmax(1).tolist() == [0]


@pytest.mark.filterwarnings("ignore")  # what the exporter says of itself
def test_a_tuned_network_can_be_exported_to_onnx(tmp_path):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    import onnxruntime

    net = network()
    RobustHead("standard", decision_goal="worst_class").fit(net, loader(), held_out=loader(1))
    rows, _ = data(2)
    expected, path = logits_of(net, rows), tmp_path / "network.onnx"
    torch.onnx.export(net, (rows,), str(path), input_names=["rows"], dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"rows": rows.numpy()})
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


def test_the_solver_gets_tensors_where_the_network_is_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    batches = [(rows.cuda(), labels) for rows, labels in loader()]
    on_gpu = RobustHead(LabelCVaR(0.3), C=0.1).fit(network().cuda(), batches)
    on_host = RobustHead(LabelCVaR(0.3), C=0.1).fit(network(), loader())
    assert isinstance(on_gpu.estimator_.coef_, torch.Tensor)
    assert on_gpu.estimator_.objective_ == pytest.approx(on_host.estimator_.objective_, rel=1e-5)
    np.testing.assert_allclose(
        on_gpu.linear_.weight.detach().cpu(), on_host.linear_.weight.detach(), atol=1e-3
    )
