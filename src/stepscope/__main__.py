"""`python -m stepscope` is the `stepscope` command."""

from stepscope.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
