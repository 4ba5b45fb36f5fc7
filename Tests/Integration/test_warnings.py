"""Warnings about a valid configuration: in the log at the start and at each reload."""

from __future__ import annotations

import signal

UNUSED = {"pinsets": {"forgotten": {"mode": "none"}}}


def test_a_warning_is_logged_at_the_start(gateway):
    running = gateway(UNUSED)
    line = running.wait_log("pinsets.forgotten")
    assert "warning" in line
    assert "pinfold.yaml:" in line
    assert "no entry of hosts uses this pinset" in line


def test_a_warning_is_logged_at_a_reload(gateway):
    running = gateway()
    assert "warning" not in running.log()
    running.write_config({**running.config, **UNUSED})
    running.signal(signal.SIGHUP)
    running.wait_log("configuration reloaded")
    running.wait_log("warning.*pinsets.forgotten")
