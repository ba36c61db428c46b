"""Distribution of work over processes, here or on a cluster, and stopping it cleanly."""

from puicl_config.workers.backends import Backend, check_backend, run_all
from puicl_config.workers.lifeline import drop_if_told
from puicl_config.workers.stopping import (
    STOPS,
    await_end_of,
    leave_signals_to_parent,
    signals_deferred,
    stops_with,
    take_sigterm_for_ctrl_c,
)

__all__ = [
    "STOPS",
    "Backend",
    "await_end_of",
    "check_backend",
    "drop_if_told",
    "leave_signals_to_parent",
    "run_all",
    "signals_deferred",
    "stops_with",
    "take_sigterm_for_ctrl_c",
]
