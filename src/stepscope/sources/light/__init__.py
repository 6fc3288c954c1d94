"""Light records of live workers and of MindCluster's TaskD (docs/live.md) -> tables."""

from stepscope.sources.light.source import LightSource

__all__ = ["LightSource"]
