#!/usr/bin/env python3
"""Tests the PyTorch operators on the GPU, over a library of the kernels' C interface. Needs PyTorch and pytest, and not
the package's extension.
  operators.py LIBRARY
"""
import os
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    import pytest
    import torch

    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("PyTorch finds no CUDA device", file=sys.stderr)
        return 3
    os.environ["TOOLDECODE_CUDA_LIBRARY"] = str(pathlib.Path(sys.argv[1]).resolve())
    package = types.ModuleType("tooldecode")  # whose __init__ would import the extension
    package.__path__ = [str(ROOT / "python/package/tooldecode")]
    sys.modules["tooldecode"] = package
    from tooldecode._types import Error

    package.Error = Error
    return pytest.main(["-q", "--noconftest", "-p", "no:cacheprovider", str(ROOT / "python/tests/test_cuda.py")])


if __name__ == "__main__":
    sys.exit(main())
