"""Recording MindSpore jobs: graph mode, PyNative and `ms.jit`, on CPU, GPU and Ascend."""
