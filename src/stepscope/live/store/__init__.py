"""Light records on disk: written in bounded files, aged, and read as they grow."""
