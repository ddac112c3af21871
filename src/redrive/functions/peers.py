"""Peers: who of this machine is at the other end of a connection over loopback.

Linux tells it by a question about one connection (sock_diag(7)), which takes 20 us however many there are; where a
container has no such sockets, by `/proc/net/tcp`, which lists them all.
"""

import contextlib
import itertools
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_HEAD: Final = struct.Struct("=IHHII")  # nlmsghdr
_QUESTION: Final = struct.Struct("=BBBBI")  # inet_diag_req_v2, up to the addresses
_NO_COOKIE: Final = b"\xff" * 8
_ANY_STATE: Final = 0xFFFFFFFF
_PEER: Final = struct.Struct("=64xII")  # inet_diag_msg, from its begin to the user and the inode
_DESCRIPTORS_MAX: Final = 2_000  # that are looked at for one connection: 3 ms
_ANSWER_BYTES: Final = 4096

Address = tuple[str, int]


class Peer(NamedTuple):
    """The other end of a connection: its user, and the number of its socket."""

    user: int
    inode: int


def peer_of(address: Address, own: Address) -> Peer | None:
    """The end that connected from `address` to `own`, both IPv4; None: there is no such connection any more."""
    try:
        return _by_netlink(address, own)
    except OSError:
        return _read(address, own)


def holds(processes: Iterable[int], inode: int) -> bool:
    """True if one of these processes has the socket of that number."""
    descriptors = (each for process in processes for each in _descriptors(process))
    return f"socket:[{inode}]" in itertools.islice(descriptors, _DESCRIPTORS_MAX)


def _descriptors(process: int) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                yield os.readlink(entry.path)  # noqa: PTH115 - a Path takes as long again


def _by_netlink(peer: Address, own: Address) -> Peer | None:
    """The other end of a connection, asked of the kernel over a socket; None: it knows of none."""
    (peer_host, peer_port), (own_host, own_port) = peer, own
    hosts = socket.inet_aton(peer_host), socket.inet_aton(own_host)
    addresses = struct.pack("!HH16s16s", peer_port, own_port, *hosts)
    body = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    body += addresses + bytes(4) + _NO_COOKIE
    head = _HEAD.pack(_HEAD.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.sendto(head + body, (0, 0))
        answer = kernel.recv(_ANSWER_BYTES)
    _, kind, *_ = _HEAD.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None
    return Peer(*_PEER.unpack_from(answer, _HEAD.size))


def _read(peer: Address, own: Address) -> Peer | None:
    """As `_by_netlink`, from the kernel's table of connections, which is slower."""
    addresses = [_kernel_address(peer), _kernel_address(own)]
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, _, _, _, _, user, _, inode, *_ = line.split()
            if [local, remote] == addresses:
                return Peer(user=int(user), inode=int(inode))
    return None


def _kernel_address(address: Address) -> str:
    """An address as the kernel shows it: of the machine's own byte order."""
    host, port = address
    (number,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"
