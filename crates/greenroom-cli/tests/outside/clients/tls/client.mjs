// Node over TLS: its https with keep-alive and resumption, its fetch, and its http2.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";

const [base, roots] = process.argv.slice(2);
const ca = readFileSync(roots);
const BODY = Buffer.alloc(5_000_000).map((_, index) => index % 251);
const RECEIPT = { bytes: BODY.length, sha256: createHash("sha256").update(BODY).digest("hex") };
const LONG = 20_000_000;

async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

function byHttps(agent, path, { method = "GET", headers = {}, body } = {}) {
  return new Promise((done, failed) => {
    const request = https.request(base + path, { agent, method, headers }, async (response) => {
      assert.equal(response.statusCode, 200);
      const { socket } = response;
      done({ content: await all(response), resumed: socket.isSessionReused(), socket });
    });
    request.on("error", failed);
    request.end(body);
  });
}

for (const version of ["TLSv1.2", "TLSv1.3"]) {
  const options = { ca, minVersion: version, maxVersion: version };
  const agent = new https.Agent({ ...options, keepAlive: true, maxSockets: 1 });
  const first = await byHttps(agent, "/hello");
  assert.equal(first.content.toString(), "Hello, world!\n");
  assert.equal(first.resumed, false);
  for (const headers of [{ "Content-Length": BODY.length }, { "Transfer-Encoding": "chunked" }]) {
    const upload = { method: "POST", headers, body: BODY };
    const { content, socket } = await byHttps(agent, "/upload", upload);
    assert.deepEqual(JSON.parse(content), RECEIPT);
    assert.equal(socket, first.socket);
  }
  assert.equal((await byHttps(agent, `/bytes/${LONG}`)).content.length, LONG);
  const ended = new Promise((done) => first.socket.once("close", done));
  // Its agent has nobody wait for an idle socket.
  first.socket.ref();
  first.socket.end();
  await ended;
  assert.equal((await byHttps(agent, "/hello")).resumed, true);
  agent.destroy();

  const session = http2.connect(base, options);
  const ask = async (headers, body) => {
    const stream = session.request(headers);
    stream.end(body);
    return all(stream);
  };
  for (let turn = 0; turn < 3; turn++) {
    assert.equal((await ask({ ":path": "/hello" })).toString(), "Hello, world!\n");
  }
  const receipt = await ask({ ":path": "/upload", ":method": "POST" }, BODY);
  assert.deepEqual(JSON.parse(receipt), RECEIPT);
  assert.equal((await ask({ ":path": `/bytes/${LONG}` })).length, LONG);
  session.close();
}

// Its roots come by NODE_EXTRA_CA_CERTS.
const response = await fetch(`${base}/upload`, { method: "POST", body: BODY });
assert.deepEqual(await response.json(), RECEIPT);
