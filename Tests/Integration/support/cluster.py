"""A cluster of redis-servers: three masters, and a replica of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from .fleet import Engine, EngineError
from .gateway import free_port
from .wait import until

SLOTS = 16_384


class Cluster:
    """Masters with an equal part of the slots each, and their replicas: `nodes[n + masters]` is that
    of `nodes[n]`."""

    def __init__(
        self, engines: Callable[..., Engine], masters: int = 3, replicas: bool = True,
        tls: tuple[str, ...] = (),
    ):
        """- tls: options by which all nodes speak TLS, to each other as well."""
        self.masters = masters
        self.tls_ports = [free_port() for _ in range(2 * masters if replicas else masters)] if tls else []
        self.buses = [free_port() for _ in range(2 * masters if replicas else masters)]
        self.nodes = [
            engines("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                    "--cluster-node-timeout", "1000", "--cluster-port", str(bus),
                    "--cluster-announce-ip", "127.0.0.1", "--cluster-require-full-coverage", "no",
                    "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
                    *(("--tls-port", str(self.tls_ports[number]), "--tls-cluster", "yes", *tls) if tls else ()))
            for number, bus in enumerate(self.buses)]
        for number, node in enumerate(self.nodes[:masters]):
            slots = self.slots(number)
            node.command("CLUSTER", "ADDSLOTSRANGE", slots.start, slots.stop - 1)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            port = self.tls_ports[0] if tls else self.nodes[0].port
            node.command("CLUSTER", "MEET", "127.0.0.1", port, self.buses[0])
        until(lambda: all(self._knows_all(node) for node in self.nodes), "the nodes know each other", 30)
        for number, node in enumerate(self.nodes[masters:]):
            node.command("CLUSTER", "REPLICATE", self.nodes[number].command("CLUSTER", "MYID"))
        until(lambda: all(self._is_ready(node) for node in self.nodes), "the cluster is ready", 30)

    def slots(self, number: int) -> range:
        return range(number * SLOTS // self.masters, (number + 1) * SLOTS // self.masters)

    def _knows_all(self, node: Engine) -> bool:
        info = node.command("CLUSTER", "INFO")
        return (b"cluster_known_nodes:%d\r" % len(self.nodes) in info
                and b"cluster_slots_assigned:%d\r" % SLOTS in info)

    def _is_ready(self, node: Engine) -> bool:
        role = node.command("ROLE")
        return (b"cluster_state:ok" in node.command("CLUSTER", "INFO")
                and (role[0] == b"master" or role[3] == b"connected"))

    @property
    def places(self) -> list[str]:
        return [f"127.0.0.1:{node.port}" for node in self.nodes]

    @property
    def home(self) -> int:
        """The master that has the fleet's streams."""
        slot = self.nodes[0].command("CLUSTER", "KEYSLOT", "{fleet}")
        return next(number for number in range(self.masters) if slot in self.slots(number))

    @property
    def others(self) -> list[int]:
        return [number for number in range(self.masters) if number != self.home]

    def kill(self, number: int) -> None:
        process = self.nodes[number].process
        process.kill()
        process.wait()

    def is_master(self, number: int) -> bool:
        with contextlib.suppress(OSError, EngineError):
            return self.nodes[number].command("ROLE")[0] == b"master"
        return False

    def stored(self, number: int) -> int:
        """The responses that a node has, roughly: URLs."""
        return len(self.nodes[number].keys("pinfold:1:v:*"))
