"""What a robust loss costs on a GPU beside the cross-entropy, and whether a step waits for it.

python benchmarks/loss_cost.py [--rows 4096] [--classes 1000] [--out FILE]

Forward and backward of losses on logits in float32, the median of 20 rounds of 50 steps, by CUDA
events: as they are, as ``torch.compile`` leaves them, in its mode "reduce-overhead", and the
compiled ones replayed as a CUDA graph (the time of the kernels alone). Then ten steps under
PyTorch's profiler, which counts calls that wait for the device and copies to the host, and under
``torch.cuda.set_sync_debug_mode("error")``. Without a GPU the same on the CPU, fewer times, without
graphs and without the profiler.
"""

import argparse
import json
import time
from collections.abc import Callable
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


def step_of(loss: Any, logits: Any, targets: Any, mode: str | None) -> Callable[[], None]:
    compiled = loss if mode is None else torch.compile(loss, fullgraph=True, mode=mode)

    def step() -> None:
        logits.grad = None
        compiled(logits, targets).backward()

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--classes", type=int, default=1000)
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
    for loss_name, make in LOSSES.items():
        torch._dynamo.reset()
        loss = make(counts)
        loss = loss.to(device) if isinstance(loss, torch.nn.Module) else loss
        line: dict[str, Any] = {
            "as it is": microseconds(step_of(loss, logits, targets, None), on_gpu)
        }
        step = step_of(loss, logits, targets, "default")
        line |= {"compiled": microseconds(step, on_gpu)}
        if on_gpu:
            line |= {"waits": waits(step), "as a graph": replayed(step)}
            torch._dynamo.reset()
            step = step_of(loss, logits, targets, "reduce-overhead")
            line |= {"reduce-overhead": microseconds(step, on_gpu)}
        found[loss_name] = line
        first = found["cross-entropy"]
        kinds = [key for key in line if key != "waits"]
        print(f"{loss_name}: waits {line.get('waits')}", flush=True)
        for kind in kinds:
            over = line[kind] - first[kind]
            print(f"  {kind:16} {line[kind]:8.1f}, {over:+8.1f} over cross-entropy", flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
