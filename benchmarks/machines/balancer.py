"""What stands before two web servers: each connection goes to the next one that accepts it.

    python -m benchmarks.machines.balancer PORT BACKEND_PORT...

It carries bytes and reads none, so a request that a killed server had is lost, as it would be.
"""

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Iterator

HOST = "127.0.0.1"
CHUNK = 65_536


async def balance(port: int, backends: list[int]) -> None:
    """Carry connections until the process is ended."""
    turns = itertools.cycle(range(len(backends)))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await _connect(_from(backends, next(turns)))
        if upstream is None:
            writer.close()
            return
        ways = [_pump(reader, upstream[1]), _pump(upstream[0], writer)]
        tasks = [asyncio.create_task(way) for way in ways]
        # Who hangs up on one side is to be seen to on the other.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in (writer, upstream[1]):
            each.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    server = await asyncio.start_server(carry, HOST, port, backlog=1024)
    await server.serve_forever()


def _from(backends: list[int], first: int) -> Iterator[int]:
    return iter(backends[first:] + backends[:first])


async def _connect(
    ports: Iterator[int],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    for port in ports:
        with contextlib.suppress(OSError):
            return await asyncio.open_connection(HOST, port)
    return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


if __name__ == "__main__":
    asyncio.run(balance(int(sys.argv[1]), [int(each) for each in sys.argv[2:]]))
