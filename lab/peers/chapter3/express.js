// The same with Express, and the steps with the promises of Q.
//
//   node express.js HOST PORT
'use strict';
const express = require('express');
const Q = require('q');

const [host, port] = process.argv.slice(2);
const step = (value) => Q.delay(5).then(() => value + 1);
const app = express();

app.get('/hello', (request, response) => {
  response.type('text/plain').send('Hello World\n');
});
app.get('/steps', (request, response, next) => {
  step(0).then(step).then(step).then(step)
    .then((four) => response.type('text/plain').send(`${four}\n`), next);
});
app.get('/query', (request, response, next) => {
  Q.delay(20).then(() => response.type('text/plain').send('contact 123\n'), next);
});
app.listen(port, host);
