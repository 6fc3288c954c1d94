"""The part of live tracing that runs in a training process: it takes ranges from the recorder's hooks, writes them as
records and sends digests of steps to the proxy of its node. Training never waits for it."""
