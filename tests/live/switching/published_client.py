"""A client of the service `TrainingDataTrace` as others have it: generated from the published names and numbers, and
run in a process of its own, so that nothing of our `.proto` takes part."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PUBLISHED = """
syntax = "proto3";
{package}
option go_package = ".;profiling";
message ProfilingSwitch {{
  string CommunicationOperator = 1;
  string Step = 2;
  string SaveCheckpoint = 3;
  string FP = 4;
  string DataLoader = 5;
}}
message DataTypeReq {{ string jobNsName = 1; ProfilingSwitch profilingSwitch = 2; }}
message DataTypeRes {{ string message = 1; int32 code = 2; }}
message DataStatusReq {{ string jobNsName = 1; }}
message DataStatusRes {{ string message = 1; ProfilingSwitch profilingSwitch = 2; int32 code = 3; }}
message ProfilingClientInfo {{ string jobId = 1; string role = 2; }}
service TrainingDataTrace {{
  rpc ModifyTrainingDataTraceSwitch(DataTypeReq) returns (DataTypeRes) {{}}
  rpc GetTrainingDataTraceSwitch(DataStatusReq) returns (DataStatusRes) {{}}
  rpc SubscribeDataTraceSwitch(ProfilingClientInfo) returns (stream DataStatusRes) {{}}
}}
"""
PROGRAM = """
import json, sys
import grpc
import published_pb2 as types, published_pb2_grpc as services

channel = grpc.insecure_channel(sys.argv[1])
stub = services.TrainingDataTraceStub(channel)

def shown(answer):
    values = getattr(answer, "profilingSwitch", None)
    on = None if values is None else {f.name: getattr(values, f.name) for f in values.DESCRIPTOR.fields}
    return {"code": answer.code, "message": answer.message, "on": on}

def answers(call, values):
    if call == "modify":
        switch = types.ProfilingSwitch(**values["switch"]) if values.get("switch") is not None else None
        request = types.DataTypeReq(jobNsName=values["job"], profilingSwitch=switch)
        yield stub.ModifyTrainingDataTraceSwitch(request, timeout=20)
    elif call == "get":
        yield stub.GetTrainingDataTraceSwitch(types.DataStatusReq(jobNsName=values["job"]), timeout=20)
    else:
        yield from stub.SubscribeDataTraceSwitch(types.ProfilingClientInfo(jobId=values["job"], role="taskd"))

for line in sys.stdin:
    call, values = json.loads(line)
    try:
        for answer in answers(call, values):
            print(json.dumps(shown(answer)), flush=True)
    except grpc.RpcError as error:
        print(json.dumps({"status": error.code().name, "message": error.details()}), flush=True)
"""


def generate(directory: Path, package: str = "") -> None:
    """Generate the client's code with `protoc`, as its authors do."""
    directory.mkdir(parents=True)
    (directory / "published.proto").write_text(PUBLISHED.format(package=f"package {package};" if package else ""))
    (directory / "client.py").write_text(PROGRAM)
    out = [f"--{kind}={directory}" for kind in ("python_out", "grpc_python_out")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{directory}", *out, "published.proto"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


class Client:
    """One running client; calls are answered one after the other."""

    def __init__(self, directory: Path, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "client.py", address],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, call: str, **values: Any) -> None:
        """Begin a call."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([call, values]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next answer."""
        assert self._process.stdout
        return dict(json.loads(self._process.stdout.readline()))

    def call(self, call: str, **values: Any) -> dict[str, Any]:
        """A call with one answer."""
        self.send(call, **values)
        return self.answer()

    def stop(self) -> None:
        """Let the process take nothing any more."""
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End the process at once, without a goodbye."""
        self._process.kill()
        self._process.communicate()
