// Converts PNG pictures to a palette of 32 colours. They take a third of the bytes; for text and lines the difference is invisible.

import { deflateSync, inflateSync, crc32 } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS_MAX = 32;

/** The chunks of a PNG, with their names and contents. */
function* chunks(png) {
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    yield [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + length)];
    at += length + 12;
  }
}

/** The pixels of a picture with 8 bits of red, green, blue and perhaps alpha, as a browser writes it; alpha is omitted. */
export function pixels(png) {
  const all = [...chunks(png)];
  const header = all[0][1];
  const [width, height, bits, kind, interlaced] =
    [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9], header[12]];
  const channels = { 2: 3, 6: 4 }[kind];
  if (bits !== 8 || !channels || interlaced) throw new Error("the PNG has an unsupported format");
  const raw = inflateSync(Buffer.concat(all.filter(([name]) => name === "IDAT").map(([, bytes]) => bytes)));
  const row = width * channels;
  const colours = new Uint32Array(width * height);
  let above = Buffer.alloc(row);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (row + 1)];
    const line = Buffer.from(raw.subarray(y * (row + 1) + 1, (y + 1) * (row + 1)));
    for (let x = 0; x < row; x += 1) {
      const [left, up, corner] =
        [x < channels ? 0 : line[x - channels], above[x], x < channels ? 0 : above[x - channels]];
      line[x] += [0, left, up, (left + up) >> 1, nearest(left, up, corner)][filter];
    }
    for (let x = 0; x < width; x += 1) {
      const at = x * channels;
      colours[y * width + x] = (line[at] << 16) | (line[at + 1] << 8) | line[at + 2];
    }
    above = line;
  }
  return { width, height, colours };
}

/** Paeth's predictor. */
function nearest(left, up, corner) {
  const [byLeft, byUp, byCorner] = [left, up, corner].map((value) => Math.abs(left + up - corner - value));
  if (byLeft <= byUp && byLeft <= byCorner) return left;
  return byUp <= byCorner ? up : corner;
}

const channel = (colour, shift) => (colour >> shift) & 255;

/** The same picture in its most frequent colours; other colours become the nearest of these. */
export function withPalette(png) {
  const { width, height, colours } = pixels(png);
  const counts = new Map();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const byCount = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one) || one - other);
  const palette = byCount.slice(0, COLOURS_MAX);
  const distance = (one, other) => [16, 8, 0].reduce((sum, at) => sum + (channel(one, at) - channel(other, at)) ** 2, 0);
  const closest = (colour) => palette.reduce((best, other, index) =>
    distance(colour, other) < distance(colour, palette[best]) ? index : best, 0);
  const places = new Map(byCount.map((colour, index) => [colour, index < COLOURS_MAX ? index : closest(colour)]));
  const lines = Buffer.alloc((width + 1) * height);
  colours.forEach((colour, at) => {
    lines[at + Math.floor(at / width) + 1] = places.get(colour);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(palette.flatMap((colour) => [16, 8, 0].map((at) => channel(colour, at))));
  const parts = [["IHDR", header], ["PLTE", table], ["IDAT", deflateSync(lines, { level: 9 })], ["IEND", Buffer.alloc(0)]];
  return Buffer.concat([SIGNATURE, ...parts.map(([name, bytes]) => chunk(name, bytes))]);
}

function chunk(name, bytes) {
  const named = Buffer.concat([Buffer.from(name, "latin1"), bytes]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(bytes.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
