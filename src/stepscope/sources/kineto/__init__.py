"""Reading the traces of torch.profiler: Kineto's Chrome trace JSON of PyTorch 1.8 and later."""

from stepscope.sources.kineto.source import KinetoSource

__all__ = ["KinetoSource"]
