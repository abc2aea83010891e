// Picture files for uploads, generated so that none are kept in the repository.
import { deflateSync, crc32 } from "node:zlib";

// Returns a PNG of diagonal stripes and a disc; the number sets the colours.
export function paint(number, width = 900, height = 600) {
  const rows = Buffer.alloc((width * 3 + 1) * height);
  const [first, second, disc] = [0, 1, 2].map((part) => colour(number * 3 + part));
  for (let y = 0, at = 0; y < height; y += 1) {
    at += 1;
    for (let x = 0; x < width; x += 1, at += 3) {
      const isInDisc = Math.hypot(x - width / 2, y - height / 2) < height / 3;
      rows.set(isInDisc ? disc : (x + y) % 120 < 60 ? first : second, at);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

function colour(number) {
  return [number * 67 + 40, number * 131 + 90, number * 29 + 120].map((part) => part % 256);
}

function chunk(kind, content) {
  const named = Buffer.concat([Buffer.from(kind, "latin1"), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}
