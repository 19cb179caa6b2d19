"""A server of S3 that costs next to nothing: it has one object, in memory.

It checks no signature and answers ranges with 206. It prints the free port that it listens on:

    python -m benchmarks.s3_memory BYTES
"""

from __future__ import annotations

import asyncio
import os
import re
import sys

_RANGE = re.compile(rb"range: *bytes=(\d+)-(\d+)", re.IGNORECASE)
_HEAD = (
    b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%sContent-Type: application/octet-stream\r\n"
    b'ETag: "one"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n'
)


class Answers(asyncio.Protocol):
    data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.asked = transport, b""

    def data_received(self, data: bytes) -> None:
        *heads, self.asked = (self.asked + data).split(b"\r\n\r\n")
        for head in heads:
            self.answer(head)

    def answer(self, head: bytes) -> None:
        whole, wanted = len(self.data), _RANGE.search(head)
        if head.startswith(b"HEAD") or not wanted:
            self.transport.write(_HEAD % (b"200 OK", whole, b""))
            return
        start, end = int(wanted[1]), min(int(wanted[2]) + 1, whole)
        part = b"Content-Range: bytes %d-%d/%d\r\n" % (start, end - 1, whole)
        self.transport.write(_HEAD % (b"206 Partial Content", end - start, part))
        self.transport.write(memoryview(self.data)[start:end])


async def main(size: int) -> None:
    Answers.data = os.urandom(size)
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
