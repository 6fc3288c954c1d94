"""Always-on light tracing of a running job: switched on and off without a restart, with bounded storage, and watched by
an online detector of slow ranks, hosts and links. See `docs/live.md`."""
