"""Python's aiohttp."""

import asyncio

import aiohttp

from parts import BASE, TIMEOUT, check, parts


async def main():
    timeout = aiohttp.ClientTimeout(total=TIMEOUT)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        async with session.get(f"{BASE}/parts") as response:
            for part in parts():
                found = b""
                while len(found) < len(part):
                    found += (await response.content.readchunk())[0]
                check(found, part)
                async with session.get(f"{BASE}/next") as acknowledged:
                    await acknowledged.read()
            check(await response.content.read(), b"")


asyncio.run(main())
