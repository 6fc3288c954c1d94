"""Recording a training process that was started without stepscope, and leaving it as it was.

`processes` and `permission` look at the process from outside. `injection` makes it run one line of Python, by
`sys.remote_exec` or one of the `debuggers`. `visitor` is what that line runs; `recording` and `worker` do the work in
there. `session` is the user's side of one such connection, and `job` leads several at once.
"""
