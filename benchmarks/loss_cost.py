"""What a robust loss costs on a GPU beside the cross-entropy, and whether a step waits for it.

python benchmarks/loss_cost.py [--rows 4096] [--classes 1000] [--only NAME ...] [--plain]
    [--out FILE]

Losses on logits in float32. First as people call them, forward alone and forward with backward, in
loops of 200 steps that the host launches one by one, all losses in turn: medians of 15 rounds by
CUDA events, medians and minima by the host's clock. Then forward and backward replayed as a CUDA
graph, the time of the kernels alone. Without ``--plain`` also as ``torch.compile`` leaves them, in
its mode "reduce-overhead", and the compiled ones replayed as a CUDA graph (the median of 20 rounds
of 50 steps). Ten steps run under PyTorch's profiler, which counts waits for the device and
copies to the host, and one under ``torch.cuda.set_sync_debug_mode("error")``. Without a GPU the
same on the CPU, fewer times, without graphs and without the profiler.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from equipoise import LabelCVaR, PriorBall, WorstClass
from equipoise.torch import RobustLoss

LOSSES: dict[str, Callable[[Any], Any]] = {
    "cross-entropy": lambda counts: F.cross_entropy,
    "worst class": lambda counts: RobustLoss(WorstClass(), counts),
    "LabelCVaR(0.1)": lambda counts: RobustLoss(LabelCVaR(0.1), counts),
    "LabelCVaR(0.1), exact masses": lambda counts: RobustLoss(LabelCVaR(0.1), counts, ascent=None),
    "PriorBall(0.1)": lambda counts: RobustLoss(PriorBall(0.1), counts),
}
# What a program calls when it waits for the device.
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "Memcpy DtoH")


def as_on(loss: Any, device: Any) -> Any:
    return loss.to(device) if isinstance(loss, torch.nn.Module) else loss


def step_of(loss: Any, logits: Any, targets: Any, mode: str | None) -> Callable[[], None]:
    called = loss if mode is None else torch.compile(loss, fullgraph=True, mode=mode)

    def step() -> None:
        logits.grad = None
        called(logits, targets).backward()

    return step


def microseconds(step: Callable[[], Any], on_gpu: bool) -> float:
    rounds, steps = (20, 50) if on_gpu else (3, 2)
    for _ in range(10 if on_gpu else 2):
        step()
    times = []
    for _ in range(rounds):
        if on_gpu:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
        else:
            began = time.perf_counter()
        for _ in range(steps):
            step()
        if on_gpu:
            end.record()
            torch.cuda.synchronize()
            times.append(1000 * start.elapsed_time(end) / steps)
        else:
            times.append(1e6 * (time.perf_counter() - began) / steps)
    return float(np.median(times))


def in_turn(steps: dict[Any, Callable[[], Any]], on_gpu: bool) -> dict[Any, Any]:
    """Microseconds of each step in every round, on the device and on the host.

    Rounds of all follow each other, so that what slows the machine slows all.
    """
    rounds, times = (15, 200) if on_gpu else (3, 2)
    found: dict[Any, Any] = {name: np.empty((rounds, 2)) for name in steps}
    for turn in range(-1, rounds):  # the first is not counted
        for name, step in steps.items():
            if on_gpu:
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda.synchronize()
                start.record()
            began = time.perf_counter()
            for _ in range(times):
                step()
            host = device = 1e6 * (time.perf_counter() - began) / times
            if on_gpu:
                end.record()
                torch.cuda.synchronize()
                device = 1000 * start.elapsed_time(end) / times
            found[name][turn] = device, host
    return found


def summary(times: Any, others: Any) -> dict[str, float]:
    """Medians and the least of rounds, and by how much they are over others."""
    over = np.median(times - others, 0)
    return {
        "device": float(np.median(times[:, 0])),
        "device, over": float(over[0]),
        "host": float(np.median(times[:, 1])),
        "host, over": float(over[1]),
        "host, least": float(times[:, 1].min()),
        "host, least, over": float(times[:, 1].min() - others[:, 1].min()),
    }


def replayed(step: Callable[[], None]) -> float:
    """The time of a step as a CUDA graph; NaN where it cannot be one."""
    stream = torch.cuda.Stream()
    try:
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    except RuntimeError as error:
        print(f"no graph: {str(error).splitlines()[0]}")
        return float("nan")
    return microseconds(graph.replay, True)


def waits(step: Callable[[], None]) -> dict[str, int]:
    """Calls that wait for the device in ten steps; the one at the end of profiling left out."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    except RuntimeError as error:
        print(f"a step waits: {str(error).splitlines()[0]}")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        with torch.profiler.record_function("ten steps"):
            for _ in range(10):
                step()
        torch.cuda.synchronize()
    events = profile.events()
    # The span is there once on the host, and maybe once more on the device.
    spans = [e for e in events if e.name == "ten steps" and "CPU" in str(e.device_type)]
    start, end = spans[0].time_range.start, spans[0].time_range.end
    inside = [e.name for e in events if start <= e.time_range.start <= end]
    return {wait: sum(wait in name for name in inside) for wait in WAITS}


def compiled(loss: Any, logits: Any, targets: Any, on_gpu: bool) -> dict[str, Any]:
    torch._dynamo.reset()
    step = step_of(loss, logits, targets, "default")
    line: dict[str, Any] = {"compiled": microseconds(step, on_gpu)}
    if on_gpu:
        line |= {"compiled waits": waits(step), "as a graph": replayed(step)}
        torch._dynamo.reset()
        step = step_of(loss, logits, targets, "reduce-overhead")
        line |= {"reduce-overhead": microseconds(step, on_gpu)}
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--plain", action="store_true", help="without compiling anything")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    torch.manual_seed(0)
    targets = torch.randint(0, given.classes, (given.rows,), device=device)
    logits = torch.randn(given.rows, given.classes, device=device, requires_grad=True)
    counts = np.geomspace(1000, 10, given.classes).round()
    name = torch.cuda.get_device_name() if on_gpu else "CPU"
    print(f"{given.rows} x {given.classes} on {name}, torch {torch.__version__}: microseconds")
    found: dict[str, Any] = {"device": name, "torch": torch.__version__}
    names = dict.fromkeys(["cross-entropy", *given.only])
    losses = {name: as_on(LOSSES[name](counts), device) for name in names}
    steps: dict[Any, Callable[[], Any]] = {}
    for loss_name, loss in losses.items():
        steps[loss_name, "forward"] = partial(loss, logits, targets)
        steps[loss_name, "as it is"] = step_of(loss, logits, targets, None)
    times = in_turn(steps, on_gpu)
    for loss_name, loss in losses.items():
        line: dict[str, Any] = {}
        for kind in ("forward", "as it is"):
            of_kind = summary(times[loss_name, kind], times["cross-entropy", kind])
            line |= {f"{kind}, {name}": value for name, value in of_kind.items()}
        if on_gpu:
            step = steps[loss_name, "as it is"]
            line |= {"waits": waits(step), "as it is, a graph": replayed(step)}
        if not given.plain:
            line |= compiled(loss, logits, targets, on_gpu)
        found[loss_name] = line
        first = found["cross-entropy"]
        print(f"{loss_name}: waits {line.get('waits')}, {line.get('compiled waits')}", flush=True)
        for kind in (key for key in line if "waits" not in key and "over" not in key[-4:]):
            over = line.get(f"{kind}, over", line[kind] - first[kind])
            print(f"  {kind:21} {line[kind]:8.1f}, {over:+8.1f} over cross-entropy", flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
