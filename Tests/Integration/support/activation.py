"""Run as a program: passes descriptors on as a service manager does (sd_listen_fds(3)), and becomes
the program that gets them.

    python activation.py NAME=DESCRIPTOR… -- COMMAND…
"""

import fcntl
import os
import sys

# Above what any of them is moved to.
SPARE = 100


def main(arguments: list[str]) -> None:
    split = arguments.index("--")
    passed = [one.rpartition("=") for one in arguments[:split]]
    moved = [fcntl.fcntl(int(number), fcntl.F_DUPFD, SPARE) for _, _, number in passed]
    os.closerange(3, SPARE)
    for index, number in enumerate(moved):
        os.dup2(number, 3 + index, inheritable=True)
        os.close(number)
    os.environ["LISTEN_PID"] = str(os.getpid())
    os.environ["LISTEN_FDS"] = str(len(moved))
    os.environ["LISTEN_FDNAMES"] = ":".join(name for name, _, _ in passed)
    os.execv(arguments[split + 1], arguments[split + 1:])


if __name__ == "__main__":
    main(sys.argv[1:])
