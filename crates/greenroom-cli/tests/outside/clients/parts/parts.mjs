// Node's fetch and its http, reading a response part by part.

import assert from 'node:assert/strict'
import http from 'node:http'

const [base, ...lengths] = process.argv.slice(2)

async function * ofFetch() {
  yield * (await fetch(`${base}/parts`)).body
}

async function * ofHttp() {
  yield * await new Promise((resolve, reject) => http.get(`${base}/parts`, resolve).on('error', reject))
}

async function readPartByPart(pieces) {
  for (const [number, length] of lengths.entries()) {
    let found = ''
    while (found.length < Number(length)) {
      const { value } = await pieces.next()
      found += Buffer.from(value).toString()
    }
    assert.ok(found === String.fromCharCode(97 + number).repeat(Number(length)), `part ${number} is another`)
    await (await fetch(`${base}/next`)).text()
  }
  assert.deepEqual(await pieces.next(), { value: undefined, done: true })
}

await readPartByPart(ofFetch())
await readPartByPart(ofHttp())
process.exit(0)
