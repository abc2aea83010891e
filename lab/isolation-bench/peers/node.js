'use strict';
// The application of this benchmark in Node: `node node.js PROCESSES`.

const cluster = require('node:cluster');
const http = require('node:http');

const PROCESSES = Number(process.argv[2] ?? 1);
// As long as the other servers' queue of new connections.
const BACKLOG = 4096;
const N_MAX = 100_000;
const MILLIS_MAX = 60_000;

const pause = new Int32Array(new SharedArrayBuffer(4));

function fibonacci(n) {
  let [current, next] = [0n, 1n];
  for (let i = 0; i < n; i++) {
    [current, next] = [next, current + next];
  }
  return current;
}

function answer(request, response) {
  const fib = /^\/(?:fib|page)\/(\d+)$/.exec(request.url);
  const block = /^\/block\/(\d+)$/.exec(request.url);
  let [status, text] = [404, 'Nothing is here.\n'];
  if (request.url === '/hello') {
    [status, text] = [200, 'Hello, world!\n'];
  } else if (fib && Number(fib[1]) <= N_MAX) {
    [status, text] = [200, `${fibonacci(Number(fib[1]))}\n`];
  } else if (block && Number(block[1]) <= MILLIS_MAX) {
    // Keeps its thread, as a synchronous driver does.
    Atomics.wait(pause, 0, 0, Number(block[1]));
    [status, text] = [200, 'done\n'];
  }
  response.writeHead(status, {
    'Content-Type': 'text/plain',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

function announce(address) {
  console.log(`listening on 127.0.0.1:${address.port}`);
}

function lead() {
  let listening = 0;
  cluster.on('listening', (_, address) => {
    listening += 1;
    if (listening === PROCESSES) {
      announce(address);
    }
  });
  for (let i = 0; i < PROCESSES; i++) {
    cluster.fork();
  }
}

function serve() {
  const server = http.createServer(answer);
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
    if (cluster.isPrimary) {
      announce(server.address());
    }
  });
}

if (PROCESSES > 1 && cluster.isPrimary) {
  lead();
} else {
  serve();
}
