"""Reading Chrome trace events: the JSON that Kineto and the Ascend tools write.

`TraceEvents` gives a trace's events as batches of columns. Whether the compiled decoder or Python read them is hidden.
"""
