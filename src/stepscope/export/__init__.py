"""Writing recordings in the forms that other tools read: classic `profiler/` files and `*_ascend_ms` directories."""
