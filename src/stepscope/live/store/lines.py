"""Ranges as the lines of a record file: MindCluster's markers, one JSON object a line.

Formatted by hand, since this runs in training processes: about 1 us a range.
"""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted

from stepscope.json_files import value_in
from stepscope.live.messages import MOST_TEXT
from stepscope.recording_format.element_types import element_bytes
from stepscope.recording_format.light import call_of
from stepscope.recording_format.marks import CollectiveDetail


def host_range(range_id: int, name: str, domain: str, start_ns: int, end_ns: int, pid: int, tid: int) -> str:
    """The two lines of a range that was timed on the host only.

    Args:
        range_id: Identifies the range among those of this process.
        name: `step 12`, `forward`, `dataloader`, `save_checkpoint` (`recording_format/light.py`), or that of a call
            (`call_name`). Any characters are valid.
        start_ns: Since the epoch.
        tid: Native id of the thread.
    """
    ids = f'{{"Pt":{{"ProcessId":{pid},"ThreadId":{tid}}},"Ds":{{"DeviceId":{pid},"StreamId":{tid}}}}}'
    return (
        f'{{"Kind":1,"Flag":2,"SourceKind":0,"Timestamp":{start_ns},"Id":{range_id},"MsptiObjectId":{ids},'
        f'"Name":{_quoted(name)},"Domain":"{domain}"}}\n'
        f'{{"Kind":1,"Flag":4,"SourceKind":0,"Timestamp":{end_ns},"Id":{range_id},"MsptiObjectId":{ids},'
        '"Name":"","Domain":""}\n'
    )


def timed_range(
    range_id: int,
    name: str,
    domain: str,
    start_ns: int,
    end_ns: int,
    pid: int,
    tid: int,
    device_start_ns: int,
    device_end_ns: int,
    device: int,
    stream: int,
) -> str:
    """The four lines of a range that was timed on the host and on a stream of a device; see `host_range`.

    Args:
        device_start_ns: Since the epoch, like all times here.
        device: Index of the device.
    """
    ids = f'{{"Pt":{{"ProcessId":{pid},"ThreadId":{tid}}},"Ds":{{"DeviceId":{pid},"StreamId":{tid}}}}}'
    on = f'{{"Pt":{{"ProcessId":{device},"ThreadId":{stream}}},"Ds":{{"DeviceId":{device},"StreamId":{stream}}}}}'
    return (
        f'{{"Kind":1,"Flag":16,"SourceKind":0,"Timestamp":{start_ns},"Id":{range_id},"MsptiObjectId":{ids},'
        f'"Name":{_quoted(name)},"Domain":"{domain}"}}\n'
        f'{{"Kind":1,"Flag":32,"SourceKind":0,"Timestamp":{end_ns},"Id":{range_id},"MsptiObjectId":{ids},'
        '"Name":"","Domain":""}\n'
        f'{{"Kind":1,"Flag":16,"SourceKind":1,"Timestamp":{device_start_ns},"Id":{range_id},"MsptiObjectId":{on},'
        '"Name":"","Domain":""}\n'
        f'{{"Kind":1,"Flag":32,"SourceKind":1,"Timestamp":{device_end_ns},"Id":{range_id},"MsptiObjectId":{on},'
        '"Name":"","Domain":""}\n'
    )


@lru_cache(maxsize=4096)
def call_name(operation: str, detail: str, stream: int = 0) -> str:
    """The name of a call of communication in MindCluster's form, which is JSON itself; calls repeat, so it is cached.

    The keys after `groupName` and the peer are ours, and others ignore them.

    Args:
        operation: As in the table `collectives`, e.g. `all_reduce`.
        detail: That of its mark (`recording_format.marks.collective_text`).
        stream: Of the device.
    """
    known = CollectiveDetail.of(value_in(detail))
    each = element_bytes(known.element_type)
    count = known.size_bytes // each if each and known.size_bytes is not None else known.size_bytes
    values: dict[str, object] = {
        "streamId": stream,
        "count": count,
        "dataType": known.element_type,
        "opName": call_of(operation),
        "groupName": known.group,
        "srcRank" if operation == "recv" else "destRank": known.peer,
        "sizeBytes": known.size_bytes,
        "groupSize": known.group_size,
        "async": "true" if known.is_async else None,
    }
    texts = {key: str(value)[:MOST_TEXT] for key, value in values.items() if value is not None}
    return json.dumps(texts, separators=(",", ":"))
