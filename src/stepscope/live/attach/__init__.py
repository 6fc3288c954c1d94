"""Recording a training process that was started without stepscope, and leaving it as it was.

`target` looks at the process from outside, `injection` makes it run one line of Python (by `sys.remote_exec`, gdb or
lldb), `visitor` is what that line runs, `recording` and `worker` do the work in there, and `session` leads all this from
the process of the user.
"""
