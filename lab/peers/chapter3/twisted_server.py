"""The same server for Twisted, which section 3.1.3 names: a reactor for Python.

    python3 twisted_server.py HOST PORT
"""

import sys
import time

from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site


class Hello(Resource):
    isLeaf = True

    def render_GET(self, request):
        return text(request, b"Hello World\n")


class Later(Resource):
    """A page that an asynchronous function makes."""

    isLeaf = True

    def __init__(self, make):
        super().__init__()
        self.make = make

    def render_GET(self, request):
        ensureDeferred(self.finish(request))
        return NOT_DONE_YET

    async def finish(self, request):
        request.write(text(request, await self.make()))
        request.finish()


def text(request, body):
    request.setHeader(b"content-type", b"text/plain")
    request.setHeader(b"content-length", str(len(body)).encode())
    return body


async def steps():
    value = 0
    for _ in range(4):
        value = await deferLater(reactor, 0.005, lambda: value + 1)
    return b"%d\n" % value


async def query():
    await deferToThread(time.sleep, 0.02)
    return b"contact 123\n"


root = Resource()
root.putChild(b"hello", Hello())
root.putChild(b"steps", Later(steps))
root.putChild(b"query", Later(query))
reactor.suggestThreadPoolSize(20)
reactor.listenTCP(int(sys.argv[2]), Site(root), backlog=1024, interface=sys.argv[1])
reactor.run()
