"""Files of MindSpore's dataset profiling about queues, batches and CPU use: one reader for all places.

They occur in classic profiles, in directories of later profilers, and in our own recordings. Their times use the
host's monotonic clock; the caller gives its offset to the clock of the rest.
"""
