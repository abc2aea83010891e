'use strict';
// Both tests in Node: `node node.js PROCESSES HOST PORT URL`, the page to load.

const cluster = require('node:cluster');
const http = require('node:http');
const { pipeline } = require('node:stream');

const [processes, host, port, page] = process.argv.slice(2);
// As its documentation has it: a process for each core, of which there is one.
const N_MAX = 100_000;
const CONNECTIONS_MAX = 2048;

const agent = new http.Agent({ keepAlive: true, maxFreeSockets: CONNECTIONS_MAX, timeout: 10_000 });

function fibonacci(n) {
  let [current, next] = [0n, 1n];
  for (let i = 0; i < n; i++) {
    [current, next] = [next, current + next];
  }
  return current;
}

function send(response, status, text) {
  response.writeHead(status, {
    'Content-Type': 'text/plain',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

function proxy(response) {
  const outgoing = http.get(page, { agent }, (incoming) => {
    response.writeHead(incoming.statusCode, {
      'Content-Type': incoming.headers['content-type'],
      'Content-Length': incoming.headers['content-length'],
    });
    // It destroys both when either fails.
    pipeline(incoming, response, () => {});
  });
  outgoing.on('timeout', () => outgoing.destroy(new Error('late')));
  outgoing.on('error', () => {
    if (!response.headersSent) {
      send(response, 502, 'the third party has failed\n');
    }
  });
}

function respond(request, response) {
  const fib = /^\/fib\/(\d{1,9})$/.exec(request.url);
  if (fib && Number(fib[1]) <= N_MAX) {
    send(response, 200, `${fibonacci(Number(fib[1]))}\n`);
  } else if (request.url.startsWith('/fib/')) {
    send(response, 400, 'not such a number\n');
  } else if (request.url === '/proxy') {
    proxy(response);
  } else {
    send(response, 404, 'nothing is here\n');
  }
}

if (processes > 1 && cluster.isPrimary) {
  for (let i = 0; i < processes; i++) {
    cluster.fork();
  }
} else {
  http.createServer(respond).listen({ host, port, backlog: 4096 });
}
