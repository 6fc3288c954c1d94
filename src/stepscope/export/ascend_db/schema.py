"""The tables of both databases as torch_npu writes them, and the numbers that stand for words in them."""

from __future__ import annotations

NO_NUMBER = 0xFFFFFFFF
"""Stands for no connection, no stream, no context and no model."""
NO_TYPE = 65535
"""Stands for no data type, link, transport or RDMA type."""
NOT_AVAILABLE = "N/A"
"""Stands for an unknown text."""

EVENTS = {
    "STRING_IDS": "id INTEGER PRIMARY KEY, value TEXT",
    "TASK": "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
    "globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER",
    "COMPUTE_TASK_INFO": "name INTEGER, globalTaskId INTEGER, blockDim INTEGER, mixBlockDim INTEGER, taskType INTEGER, "
    "opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, "
    "outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER, opState INTEGER, hf32Eligible INTEGER",
    "COMMUNICATION_OP": "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, "
    "opId INTEGER, relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER, "
    "deviceId INTEGER",
    "COMMUNICATION_TASK_INFO": "name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, "
    "groupName INTEGER, notifyId INTEGER, rdmaType INTEGER, srcRank INTEGER, dstRank INTEGER, transportType INTEGER, "
    "size INTEGER, dataType INTEGER, linkType INTEGER, opId INTEGER, isMaster INTEGER, bandwidth NUMERIC",
    "CANN_API": "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER",
    "PYTORCH_API": "startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, "
    "sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, "
    "type INTEGER",
    "CONNECTION_IDS": "id INTEGER, connectionId INTEGER",
    "PYTORCH_CALLCHAINS": "id INTEGER, stack INTEGER, stackDepth INTEGER",
    "MSTX_EVENTS": "startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, "
    "message INTEGER, globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER, connectionId INTEGER",
    "GC_RECORD": "startNs INTEGER, endNs INTEGER, globalTid INTEGER",
    "STEP_TIME": "id INTEGER, startNs INTEGER, endNs INTEGER",
    "TASK_PMU_INFO": "globalTaskId INTEGER, name INTEGER, value NUMERIC",
    "MEMCPY_INFO": "globalTaskId INTEGER, size NUMERIC, memcpyOperation INTEGER",
    "RANK_DEVICE_MAP": "rankId INTEGER, deviceId INTEGER",
    "HOST_INFO": "hostUid TEXT, hostName TEXT",
    "NPU_INFO": "id INTEGER, name TEXT",
    "META_DATA": "name TEXT, value TEXT",
    "SESSION_TIME_INFO": "startTimeNs INTEGER, endTimeNs INTEGER",
}
"""Tables of the database of events that are always there, and their columns."""

OPTIONAL = {
    "OP_MEMORY": "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, activeReleaseTime INTEGER, "
    "duration INTEGER, activeDuration INTEGER, allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, "
    "allocationTotalActive INTEGER, releaseTotalAllocated INTEGER, releaseTotalReserved INTEGER, "
    "releaseTotalActive INTEGER, streamPtr INTEGER, deviceId INTEGER",
    "MEMORY_RECORD": "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, "
    "totalActive INTEGER, streamPtr INTEGER, deviceId INTEGER",
    "NPU_MODULE_MEM": "moduleId INTEGER, timestampNs NUMERIC, totalReserved NUMERIC, deviceId INTEGER",
    "AICORE_FREQ": "deviceId INTEGER, timestampNs NUMERIC, freq INTEGER, dieId INTEGER",
}
"""Tables that are there if they have rows."""

INDEXES = (
    "CREATE INDEX TaskIndex ON TASK(startNs, globalTaskId)",
    "CREATE INDEX CommunicationTaskIndex ON COMMUNICATION_TASK_INFO(globalTaskId)",
    "CREATE INDEX CttIndex ON COMPUTE_TASK_INFO(globalTaskId)",
    "CREATE INDEX CannIndex ON CANN_API(connectionId)",
)

ANALYSIS = {
    "CommAnalyzerBandwidth": "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, "
    "transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, "
    "total_duration NUMERIC, step TEXT, type TEXT",
    "CommAnalyzerTime": "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, "
    "transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT",
    "CommAnalyzerMatrix": "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, "
    "transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT",
    "StepTraceTime": "deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, "
    "overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
    "communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC",
}
"""Tables of the database of the communication analysis."""

_UNKNOWN_TYPES = {255: "RESERVED", 65534: NOT_AVAILABLE, NO_TYPE: "INVALID_TYPE"}
ENUMERATIONS: dict[str, dict[int, str]] = {
    "ENUM_API_TYPE": {
        20000: "acl",
        15000: "model",
        10000: "node",
        5500: "communication",
        5000: "runtime",
        50001: "op",
        50002: "queue",
        50003: "trace",
        50004: "mstx",
    },
    "ENUM_HCCL_DATA_TYPE": {
        **dict(enumerate(("INT8", "INT16", "INT32", "FP16", "FP32", "INT64", "UINT64", "UINT8", "UINT16", "UINT32"))),
        10: "FP64",
        11: "BFP16",
        12: "INT128",
        **_UNKNOWN_TYPES,
    },
    "ENUM_HCCL_LINK_TYPE": {
        **dict(enumerate(("ON_CHIP", "HCCS", "PCIE", "ROCE", "SIO", "HCCS_SW", "STANDARD_ROCE"))),
        **_UNKNOWN_TYPES,
    },
    "ENUM_HCCL_TRANSPORT_TYPE": {**dict(enumerate(("SDMA", "RDMA", "LOCAL"))), **_UNKNOWN_TYPES},
    "ENUM_MSTX_EVENT_TYPE": dict(enumerate(("marker", "push/pop", "start/end", "marker_ex"))),
    "ENUM_MEMCPY_OPERATION": dict(enumerate(("host to host", "host to device", "device to host", "device to device"))),
}
"""Tables of numbers and their words."""


def number_of(enumeration: str) -> dict[str, int]:
    """Word to number."""
    return {word: number for number, word in ENUMERATIONS[enumeration].items()}


MARKER, RANGE = 0, 2
"""Numbers of `ENUM_MSTX_EVENT_TYPE`: a point, and a range with a start and an end."""
