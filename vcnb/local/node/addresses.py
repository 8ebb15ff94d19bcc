"""Addresses of pods: one of the machine's own loopback addresses for each, so that every pod can listen on any port.

All of 127.0.0.0/8 belongs to the loopback interface of Linux. A cluster takes one of the 254 networks 127.x.0.0/16,
chosen by its directory, so two clusters on one machine hardly ever meet; 127.0.0.0/16 is left to everybody else.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterable
from pathlib import Path

from vcnb.errors import VcnbError

__all__ = ["HOST_ADDRESS", "Addresses"]

HOST_ADDRESS = "127.0.0.1"


class Addresses:
    """Hands out addresses; one that was given back is the last to be used again."""

    def __init__(self, root: Path) -> None:
        second = 1 + zlib.crc32(str(root.resolve()).encode()) % 254
        self._network = ipaddress.IPv4Network(f"127.{second}.0.0/16")
        self._taken: dict[str, str] = {}
        self._next = 1

    def take(self, uid: str, wanted: str = "") -> str:
        """The address of a pod, by uid. ``wanted`` is the one it had before; it is kept unless another pod has it."""
        if wanted and self._taken.get(wanted, uid) == uid:
            self._taken[wanted] = uid
            self._next = max(self._next, self._number(wanted) + 1)
            return wanted
        size = self._network.num_addresses - 2
        for _ in range(size):
            number = 1 + (self._next - 1) % size
            self._next = number + 1
            address = str(self._network[number])
            if address not in self._taken:
                self._taken[address] = uid
                return address
        raise VcnbError(f"all {size} pod addresses of {self._network} are in use")

    def give_back(self, uid: str) -> None:
        """The pod is gone."""
        for address in [address for address, owner in self._taken.items() if owner == uid]:
            del self._taken[address]

    def _number(self, address: str) -> int:
        try:
            number = int(ipaddress.IPv4Address(address)) - int(self._network.network_address)
        except ValueError:
            return 0
        return number if 0 < number < self._network.num_addresses - 2 else 0

    def keep(self, pods: Iterable[tuple[str, str]]) -> None:
        """Remember (uid, address) pairs of pods that were here before."""
        for uid, address in pods:
            if address:
                self.take(uid, address)
