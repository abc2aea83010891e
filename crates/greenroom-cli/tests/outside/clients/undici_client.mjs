// Node's undici: keep-alive, pipelining of four, uploads with a length and in chunks, refused bodies.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'

const [base, modules] = process.argv.slice(2)
const { Client } = createRequire(modules)('undici')

const HELLO = 'Hello, world!\n'
const BODY_BYTES_MAX = 2 * 1024 * 1024
const UPLOAD_SIZES = [0, 1, 65536, 1024 * 1024, BODY_BYTES_MAX]
const PIECE_BYTES = 16 * 1024
const PIPELINED = 400

let connections = 0

function connect(pipelining) {
  const client = new Client(base, { pipelining, headersTimeout: 20_000, bodyTimeout: 20_000 })
  client.on('connect', () => { connections += 1 })
  return client
}

async function ask(client, method, path, body) {
  const response = await client.request({ method, path, body })
  const content = Buffer.from(await response.body.arrayBuffer())
  return { status: response.statusCode, headers: response.headers, content }
}

// Bytes that repeat with a period that divides no buffer's size.
function bytes(size) {
  return Buffer.from(Uint8Array.from({ length: size }, (_, index) => index % 251))
}

async function * pieces(data) {
  for (let start = 0; start < data.length; start += PIECE_BYTES) {
    yield data.subarray(start, start + PIECE_BYTES)
  }
}

function assertReceipt(sent, response) {
  assert.equal(response.status, 200, `upload of ${sent.length}: ${response.content}`)
  const sha256 = createHash('sha256').update(sent).digest('hex')
  assert.deepEqual(JSON.parse(response.content), { bytes: sent.length, sha256 })
}

function assertHello(response) {
  assert.equal(response.status, 200)
  assert.equal(response.content.toString(), HELLO)
}

async function keepAlive() {
  const client = connect(1)
  assertHello(await ask(client, 'GET', '/hello'))
  const missing = await ask(client, 'GET', '/nothing')
  assert.equal(missing.status, 404)
  for (const size of UPLOAD_SIZES) {
    const sent = bytes(size)
    assertReceipt(sent, await ask(client, 'POST', '/upload', sent))
  }
  const sent = bytes(1024 * 1024)
  assertReceipt(sent, await ask(client, 'POST', '/upload', pieces(sent)))
  assert.equal(connections, 1)
  await client.close()
}

// A connection of its own: undici trusts no server to send no body, and closes it afterwards.
async function head() {
  const client = connect(1)
  const head = await ask(client, 'HEAD', '/hello')
  assert.equal(head.status, 200)
  assert.equal(head.headers['content-length'], String(HELLO.length))
  assert.equal(head.content.length, 0)
  await client.close()
}

async function pipelined() {
  connections = 0
  const client = connect(4)
  const sizes = Array.from({ length: PIPELINED }, (_, index) => (index * 37) % 3000)
  const responses = await Promise.all(sizes.map(size => ask(client, 'GET', `/bytes/${size}`)))
  responses.forEach((response, index) => {
    assert.equal(response.status, 200)
    assert.equal(response.content.length, sizes[index])
  })
  assert.equal(connections, 1)
  await client.close()
}

async function refused() {
  const client = connect(1)
  const sent = bytes(BODY_BYTES_MAX + 1)
  assert.equal((await ask(client, 'POST', '/upload', sent)).status, 413)
  assert.equal((await ask(client, 'POST', '/upload', pieces(sent))).status, 413)
  assertHello(await ask(client, 'GET', '/hello'))
  await client.close()
}

await keepAlive()
await head()
await pipelined()
await refused()
