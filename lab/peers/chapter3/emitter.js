// Program 3.4 for Node: explicit events.
//
//   node emitter.js EVENTS
'use strict';
const { EventEmitter } = require('events');

const events = Number(process.argv[2]);
const emitter = new EventEmitter();
let rings = 0;
const ringBell = () => { ++rings; };
emitter.on('doorOpen', ringBell);

function emit() {
  const begun = process.hrtime.bigint();
  for (let i = 0; i < events; ++i) emitter.emit('doorOpen');
  return Number(process.hrtime.bigint() - begun) / events;
}

emit(); // V8 compiles it
const each = emit();
if (rings !== 2 * events) throw new Error(`${rings} rings`);
console.log(JSON.stringify({ message_ns: each }));
