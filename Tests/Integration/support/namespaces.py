"""Network namespaces of a test's own: a router, where the gateway and its servers are, and a client
behind it. They have no names, and are gone when nothing uses them any more."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)

# The client's side and the router's of the link between them.
CLIENT, ROUTER = "10.9.0.2", "10.9.0.1"
CLIENT_6, ROUTER_6 = "fd09::2", "fd09::1"
# The servers' addresses, all in the router.
SERVERS = ["198.51.100.1", "198.51.100.2", "198.51.100.3"]
SERVER_6 = "2001:db8::1"
# Who connects from the router itself.
LOCAL = "198.51.100.9"
# The firewall's mark of what TPROXY takes, and the table of routes for it.
MARK, TABLE = "0x9", "109"


class Unavailable(Exception):
    """The system does not let a test have namespaces or a firewall."""


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _own() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _new() -> int:
    """A namespace, which this thread is in from now on."""
    _checked(LIBC.unshare(CLONE_NEWNET))
    return _own()


def enter(space: int) -> None:
    """This thread, and those that it starts, and what they open, are in a namespace from now on."""
    _checked(LIBC.setns(space, CLONE_NEWNET))


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


class Network:
    """The two namespaces. The thread of the test is in the router's."""

    def __init__(self) -> None:
        for program in ("ip", "nft"):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is not installed")
        self.home = _own()
        self.router = self.client = -1
        try:
            self.client = _new()
            self.router = _new()
            self._connect()
        except OSError as error:
            self.close()
            raise Unavailable(f"no network namespace: {error}") from error
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        place = f"/proc/{os.getpid()}/fd/{self.client}"
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "inner", "type", "veth", "peer", "name", "outer")
        run("ip", "link", "set", "outer", "netns", place)
        run("ip", "address", "add", f"{ROUTER}/24", "dev", "inner")
        run("ip", "-6", "address", "add", f"{ROUTER_6}/64", "dev", "inner", "nodad")
        run("ip", "link", "set", "inner", "up")
        for one in [*SERVERS, LOCAL]:
            run("ip", "address", "add", f"{one}/32", "dev", "lo")
        run("ip", "-6", "address", "add", f"{SERVER_6}/128", "dev", "lo", "nodad")
        with self.at_client():
            run("ip", "link", "set", "lo", "up")
            run("ip", "address", "add", f"{CLIENT}/24", "dev", "outer")
            run("ip", "-6", "address", "add", f"{CLIENT_6}/64", "dev", "outer", "nodad")
            run("ip", "link", "set", "outer", "up")
            run("ip", "route", "add", "default", "via", ROUTER)
            run("ip", "-6", "route", "add", "default", "via", ROUTER_6)

    @contextlib.contextmanager
    def at_client(self) -> Iterator[None]:
        """What is opened and started meanwhile is the client's."""
        enter(self.client)
        try:
            yield
        finally:
            enter(self.router)

    def connect(self, address: str, port: int, timeout: float = 20) -> socket.socket:
        """A connection of the client's."""
        with self.at_client():
            return socket.create_connection((address, port), timeout)

    def close(self) -> None:
        enter(self.home)
        for space in (self.client, self.router, self.home):
            if space >= 0:
                os.close(space)

    # The firewall of the router

    def rules(self, text: str) -> None:
        """Puts rules of nft(8) in the place of all others."""
        done = subprocess.run(["nft", "-f", "-"], input=f"flush ruleset\n{text}", text=True,
                              capture_output=True, timeout=20)
        if done.returncode != 0:
            raise Unavailable(f"nft: {done.stderr}")

    def redirect(self, port: int, ports: str = "80, 443") -> None:
        """REDIRECT of what the client sends to the servers."""
        self.rules(f"""
            table ip transparent {{
                chain prerouting {{
                    type nat hook prerouting priority dstnat;
                    iifname inner ip daddr 198.51.100.0/24 tcp dport {{ {ports} }} redirect to :{port}
                }}
            }}
            table ip6 transparent {{
                chain prerouting {{
                    type nat hook prerouting priority dstnat;
                    iifname inner ip6 daddr 2001:db8::/64 tcp dport {{ {ports} }} redirect to :{port}
                }}
            }}""")

    def redirect_local(self, port: int, ports: str = "80, 443") -> None:
        """REDIRECT of what the router itself sends, the gateway's own connections included."""
        self.rules(f"""
            table ip transparent {{
                chain output {{
                    type nat hook output priority -100;
                    ip daddr 198.51.100.0/24 tcp dport {{ {ports} }} redirect to :{port}
                }}
            }}""")

    def tproxy(self, port: int, ports: str = "80, 443") -> None:
        """TPROXY of what the client sends to the servers."""
        for family, everything in (("-4", "0.0.0.0/0"), ("-6", "::/0")):
            with contextlib.suppress(Unavailable):  # there since an earlier test
                run("ip", family, "route", "add", "local", everything, "dev", "lo", "table", TABLE)
            if TABLE not in run("ip", family, "rule", "show"):
                run("ip", family, "rule", "add", "fwmark", MARK, "lookup", TABLE)
        self.rules(f"""
            table inet transparent {{
                chain prerouting {{
                    type filter hook prerouting priority mangle;
                    iifname inner meta l4proto tcp socket transparent 1 meta mark set {MARK} accept
                    iifname inner ip daddr 198.51.100.0/24 tcp dport {{ {ports} }} \\
                        tproxy ip to :{port} meta mark set {MARK} accept
                    iifname inner ip6 daddr 2001:db8::/64 tcp dport {{ {ports} }} \\
                        tproxy ip6 to :{port} meta mark set {MARK} accept
                }}
            }}""")
