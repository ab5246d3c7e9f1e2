"""An ONNX graph that grows node by node, all of it in float64."""

from typing import Any

import numpy as np

from equipoise.arrays import NDArray
from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require

# The first with trees in float64, and what goes with it.
_OPSETS = {"": 17, "ai.onnx.ml": 5}
_IR_VERSION = 8
# What models that are included are written in; all of it but trees is the same later.
OLD_OPSETS = {"": 17, "ai.onnx.ml": 3}


class Graph:
    """Nodes and constants between the inputs, numeric ones of type ``dtype``, and the outputs."""

    # What an included model calls its only input.
    rows = "rows"

    def __init__(self, dtype: str = "float64") -> None:
        self.onnx = require("onnx", extra="onnx")
        require("onnx.helper", extra="onnx")
        self.dtype = dtype
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def tensor(self, values: Any, name: str = "") -> Any:
        """Numbers or texts as a constant of ONNX."""
        return self.onnx.numpy_helper.from_array(np.asarray(values), name)

    def constant(self, values: Any) -> str:
        """The name of a constant that nodes can read."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.tensor(values, name))
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        make = self.onnx.helper.make_node
        self.nodes.append(make(kind, list(inputs), [name], domain=domain, **attributes))
        return name

    def cast(self, values: str, dtype: str) -> str:
        """The same values in another type."""
        return self.add("Cast", values, to=self._type(dtype))

    def input(self, name: str, width: int, *, text: bool = False) -> str:
        """Add an input of so many columns; the name of its texts, or of its numbers in float64."""
        kind = "str" if text else self.dtype
        self.inputs.append(self._info(name, kind, width))
        return name if text else self.cast(name, "float64")

    def include(self, model: Any, place: int, rows: str) -> str:
        """Take in a model of ``rows``; the name of its output at a place, in float64."""
        compose = require("onnx.compose", extra="onnx")
        prefixed = compose.add_prefix(model, f"part_{len(self.nodes)}_")
        input_name = prefixed.graph.input[0].name
        self.nodes.append(self.onnx.helper.make_node("Identity", [rows], [input_name]))
        self.nodes += prefixed.graph.node
        self.constants += prefixed.graph.initializer
        return self.cast(prefixed.graph.output[place].name, "float64")

    def model(self, outputs: dict[str, Any]) -> Any:
        """The whole, from its inputs to outputs by name, each with its type and shape."""
        helper = self.onnx.helper
        leave = [helper.make_node("Identity", [v], [name]) for name, (v, _) in outputs.items()]
        output_infos = [
            self._info(name, kind, *shape) for name, (_, (kind, *shape)) in outputs.items()
        ]
        self._refuse_equal_names(outputs)
        graph = helper.make_graph(
            [*self.nodes, *leave], "equipoise", self.inputs, output_infos, self.constants
        )
        made = helper.make_model(
            graph,
            producer_name="equipoise",
            opset_imports=[helper.make_opsetid(*each) for each in _OPSETS.items()],
            ir_version=_IR_VERSION,
        )
        self.onnx.checker.check_model(made)
        return made

    def _refuse_equal_names(self, outputs: dict[str, Any]) -> None:
        inner = [name for node in self.nodes for name in node.output]
        taken = {*outputs, *inner, *(each.name for each in self.constants)}
        if wrong := [each.name for each in self.inputs if not each.name or each.name in taken]:
            raise InvalidParameterError(
                f"an input of an ONNX model cannot have the name of the column {wrong[0]!r}, which "
                "is empty or a name inside of the model: rename the column before the fit."
            )

    def _info(self, name: str, kind: str, *shape: int) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self._type(kind), [None, *shape])

    def _type(self, dtype: str) -> int:
        kind = np.dtype(object if dtype == "str" else dtype)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(kind))


def texts_or_numbers(classes: NDArray[Any]) -> tuple[NDArray[Any], str] | None:
    """Class names as ONNX has them, and of which type; None if it has none like them."""
    if classes.dtype.kind in "US" or all(isinstance(name, str) for name in classes.tolist()):
        return classes.astype(str).astype(object), "str"
    kinds = {"i": "int64", "u": "int64", "b": "bool", "f": "float64"}
    kind = kinds.get(classes.dtype.kind)
    if kind is None or (kind == "int64" and int(classes.max()) > np.iinfo(np.int64).max):
        return None
    return classes.astype(kind), kind
