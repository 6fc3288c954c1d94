"""Writers of timelines: what a writer is (`base.py`), and one for each format."""
