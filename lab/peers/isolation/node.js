'use strict';
// The isolation experiment's application in Node: `node node.js PORT PROCESSES`.

const cluster = require('node:cluster');
const http = require('node:http');
const { Readable } = require('node:stream');

const [port, processes] = process.argv.slice(2).map(Number);
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

function take(request, response) {
  let bytes = 0;
  request.on('data', (part) => {
    bytes += part.length;
  });
  request.on('end', () => response.end(`${bytes}\n`));
}

function* parts() {
  const part = Buffer.alloc(64 * 1024);
  for (let i = 0; i < 16 * 1024; i++) {
    yield part;
  }
}

function answer(path) {
  const [, route, number] = /^\/(\w+)(?:\/(\d+))?$/.exec(path) ?? [];
  if (route === 'hello') {
    return 'Hello, world!\n';
  }
  if ((route === 'fib' || route === 'page') && number <= N_MAX) {
    return `${fibonacci(Number(number))}\n`;
  }
  if (route === 'block' && number <= MILLIS_MAX) {
    // Keeps its thread, as a synchronous driver does.
    Atomics.wait(pause, 0, 0, Number(number));
    return 'done\n';
  }
  return null;
}

if (processes > 1 && cluster.isPrimary) {
  for (let i = 0; i < processes; i++) {
    cluster.fork();
  }
} else {
  const server = http.createServer((request, response) => {
    if (request.url === '/take') {
      return take(request, response);
    }
    if (request.url === '/give') {
      return Readable.from(parts()).pipe(response);
    }
    const text = answer(request.url);
    const body = text ?? 'Nothing is here.\n';
    response.writeHead(text === null ? 404 : 200, {
      'Content-Type': 'text/plain',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  });
  // As long as the other servers' queue of new connections.
  server.listen({ port, host: '127.0.0.1', backlog: 4096 });
}
