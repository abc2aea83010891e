// Programs 3.1 to 3.3 for Node: a server, and four steps by callbacks and by promises. With the
// argument `cluster` program 3.5, a process for each core.
//
//   node node.js HOST PORT [cluster]
'use strict';
const cluster = require('cluster');
const http = require('http');
const os = require('os');
const { setTimeout: promised } = require('timers/promises');

const [host, port, how] = process.argv.slice(2);
const STEP_MS = 5;
const QUERY_MS = 20;

const step = (value, callback) => setTimeout(() => callback(value + 1), STEP_MS);
const promisedStep = (value) => promised(STEP_MS, value + 1);

function text(response, body) {
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  response.end(body);
}

const routes = {
  '/hello': (response) => text(response, 'Hello World\n'),
  '/callbacks': (response) => step(0, (one) => step(one, (two) => step(two, (three) => {
    step(three, (four) => text(response, `${four}\n`));
  }))),
  '/steps': (response) => promisedStep(0)
    .then(promisedStep)
    .then(promisedStep)
    .then(promisedStep)
    .then((four) => text(response, `${four}\n`), (error) => response.destroy(error)),
  // A driver that does not block, as Node's do not.
  '/query': (response) => promised(QUERY_MS).then(() => text(response, 'contact 123\n')),
};

if (how === 'cluster' && cluster.isPrimary) {
  for (let i = 0; i < os.availableParallelism(); ++i) cluster.fork();
} else {
  http.createServer((request, response) => {
    const route = routes[request.url];
    if (route) {
      route(response);
    } else {
      response.writeHead(404);
      response.end();
    }
  }).listen(port, host);
}
