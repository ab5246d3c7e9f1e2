"""Classifiers as ONNX graphs, for programs without Python.

This room needs onnx and skl2onnx (``pip install 'equipoise[onnx]'``) and is imported by its own
name, ``import equipoise.onnx``; nothing else of the library imports it.
"""

from equipoise.onnx.export import to_onnx

__all__ = ["to_onnx"]
