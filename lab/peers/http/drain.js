'use strict';
// Node's own server: on SIGTERM `server.close()`, after which the process ends with its last connection.

const http = require('node:http');

// As long as the other servers' queue of new connections.
const BACKLOG = 4096;
const TEXT = 'Hello, world!';

const server = http.createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': TEXT.length });
    response.end(TEXT);
  });
});

process.on('SIGTERM', () => server.close());
const [host, port] = process.argv[2].split(':');
server.listen({ port: Number(port), host, backlog: BACKLOG });
