// The two programs that AnyEvent's manual measures loops with, for Node: what it has of them.
//
//   node --expose-gc loops.js watchers PAIRS
//   node --expose-gc loops.js servers PAIRS ACTIVE SECONDS
//
// Node has no watcher of a descriptor, and no socket pair. Watchers are timers alone: half of them
// fire, the other half are cleared. Servers are the ends of connections to a Unix socket.
'use strict';
const net = require('net');

const HOUR = 3_600_000;
const [kind, pairs, active, seconds] = process.argv.slice(2).map((word, i) => (i ? +word : word));
const micros = () => Number(process.hrtime.bigint()) / 1000;
const late = () => { throw new Error('an hour has passed'); };
const report = (figures) => console.log(JSON.stringify(figures));

function rss() {
  gc();
  return process.memoryUsage.rss();
}

function watchers() {
  let todo = pairs;
  let invoked;
  const timers = [];
  const callback = () => { if (--todo === 0) end(); };
  const bytes = rss();
  const begun = micros();
  for (let i = 0; i < pairs; ++i) {
    timers.push(setTimeout(callback, 0));
    timers.push(setTimeout(late, HOUR));
  }
  const created = micros() - begun;
  const each = (rss() - bytes) / 2 / pairs;
  invoked = micros();
  function end() {
    const destroyed = micros();
    timers.forEach(clearTimeout);
    setTimeout(() => report({
      watchers: 2 * pairs,
      bytes: each,
      create_us: created / 2 / pairs,
      invoke_us: (destroyed - invoked) / pairs,
      destroy_us: (micros() - destroyed) / pairs,
    }), 0);
  }
}

async function servers() {
  const path = `\0loops-${process.pid}`;
  const writers = [];
  const send = () => writers[Math.floor(Math.random() * pairs)].write('x');
  let count = 0;
  let accepted;
  const listener = net.createServer((socket) => {
    const timeout = setTimeout(late, HOUR);
    socket.on('data', (bytes) => {
      for (const _byte of bytes) {
        ++count;
        send();
      }
      timeout.refresh();
    });
    accepted();
  });
  await new Promise((resolve) => listener.listen(path, resolve));
  const begun = micros();
  while (writers.length < pairs) {
    const both = new Promise((resolve) => { accepted = resolve; });
    writers.push(net.connect(path));
    await both;
  }
  const created = micros() - begun;
  for (let i = 0; i < active; ++i) send();
  const started = micros();
  setTimeout(() => {
    report({
      sockets: 2 * pairs,
      create_us: created / pairs,
      request_us: (micros() - started) / count,
    });
    process.exit();
  }, seconds * 1000);
}

if (kind === 'watchers') watchers();
else servers();
