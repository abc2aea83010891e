"""Takes mails for the tests: smtp_sink.py PORT FILE writes each as a line of JSON, and answers when it is on disk.

A recipient that begins with "refused" is refused for good. Prints the port when it listens; 0 takes a free one.
"""

import asyncio
import email
import email.policy
import json
import os
import sys

from aiosmtpd.smtp import SMTP


class Sink:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused"):
            return "550 5.1.1 there is no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        entry = {
            "to": envelope.rcpt_tos,
            "headers": {name.lower(): str(value) for name, value in message.items()},
            "text": message.get_body(("plain",)).get_content(),
            "html": message.get_body(("html",)).get_content(),
        }
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        return "250 OK"


async def main(port, path):
    sink = Sink(path)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(sink, hostname="sink", loop=loop), "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
