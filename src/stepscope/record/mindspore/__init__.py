"""The MindSpore backend."""
