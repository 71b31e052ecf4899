"""A slow cable that reorders frames, for `.ci/faults`.

    relay.py plain INTERFACE        makes this interface send frames of a cable's size with all checksums
    relay.py between ONE TWO MS     passes frames between two interfaces, each after a random time of at most MS

A frame with a shorter delay overtakes earlier frames. (`tc netem` would do the same, but not every kernel has it.)
"""

import ctypes
import fcntl
import heapq
import random
import select
import socket
import struct
import sys
import time

SIOCETHTOOL = 0x8946
# ETHTOOL_STXCSUM, ETHTOOL_STSO and ETHTOOL_SGSO of linux/ethtool.h: checksums and segmentation.
LEFT_TO_THE_DEVICE = [0x17, 0x1F, 0x24]
FRAME_BYTES_MAX = 65536
ALL_PROTOCOLS = 0x0003


def plain(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in LEFT_TO_THE_DEVICE:
            value = bytearray(struct.pack("II", command, 0))
            # struct ifreq: the name of the interface, then the address of a value.
            buffer = (ctypes.c_char * len(value)).from_buffer(value)
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(buffer))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def between(names, milliseconds):
    cables = []
    for name in names:
        cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        cable.bind((name, 0))
        cables.append(cable)
    draw, waiting, count = random.Random(1), [], 0
    while True:
        wait = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for cable in select.select(cables, [], [], wait)[0]:
            frame, (_, _, kind, *_) = cable.recvfrom(FRAME_BYTES_MAX)
            if kind == socket.PACKET_OUTGOING:
                continue
            count += 1
            other = cables[1 - cables.index(cable)]
            heapq.heappush(waiting, (time.monotonic() + draw.uniform(0, milliseconds) / 1000, count, other, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, cable, frame = heapq.heappop(waiting)
            cable.send(frame)


if __name__ == "__main__":
    if sys.argv[1] == "plain":
        plain(sys.argv[2])
    else:
        between(sys.argv[2:4], float(sys.argv[4]))
