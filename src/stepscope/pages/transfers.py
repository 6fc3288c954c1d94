"""How well transfers use their transports: rates by rank, small and unaligned ones, slow ones, packets sent again."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import CALLS, recorded_by
from stepscope.pages.job import groups

PAGE = Page(
    "transfers",
    "Show how transfers use links: rates by rank and step, small and unaligned ones, contention, retransmission.",
    [
        Section("rank_bandwidths", "Rates by rank and {step}, inside of hosts (SDMA) and between them (RDMA)", rows=24),
        Section("transfer_sizes", "Small transfers", rows=16),
        Section("contended_calls", "Calls beside matrix products and alone", derived=groups, rows=10),
        Section("unaligned_transfers", "Transfers of unaligned sizes", rows=10),
        Section("retransmissions", "Calls with packets sent again", derived=groups, rows=10),
    ],
    more="SDMA is the sum of the links inside of a host, RDMA goes between hosts. Rates are bytes over time.",
    scope="job",
    instead=recorded_by(
        "Ascend's profilers record what calls move over transports, and their tasks (from profiler level 1 on)",
        CALLS,
    ),
)
