// The trace as the page has it: numbers in typed arrays, one element a span. The bytes come in base64, a row of variable-length
// numbers a span; write/html.c writes them, and says in which order. Texts come as JSON, and are only ever shown as text.

const NONE = -1;
const CALLED = 1, RAN = 2, HOST_WAITED = 4, HOST_WORKED = 8; // bits of flags
const page = JSON.parse(document.getElementById("texts").textContent);

function bytesOf(id) {
  const element = document.getElementById(id);
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  element.remove();
  return bytes;
}

// Reads numbers of seven bits a byte, the lowest first. Those beyond 2^53 cannot occur: that is a hundred days in ns.
function makeReader(bytes) {
  let at = 0;
  function number() {
    let byte = bytes[at++];
    if (byte < 128) return byte;
    let value = byte & 127, factor = 128;
    do {
      byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte >= 128);
    return value;
  }
  // Small numbers of either sign: 0, -1, 1, -2, ...
  function signed() {
    const value = number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
  return { number, signed };
}

// 0: none; otherwise one more than the distance to an earlier (or later) span.
function readOther(reader, i) {
  const value = reader.number();
  if (!value) return NONE;
  const distance = value - 1;
  return i - (distance % 2 ? -(distance + 1) / 2 : distance / 2);
}

function readSpans(texts, bytes) {
  const count = texts.count, reader = makeReader(bytes);
  const spans = {
    count, sort: new Uint32Array(count), flags: new Uint8Array(count), cause: new Uint8Array(count),
    call: new Float64Array(count), returned: new Float64Array(count), waited: new Float64Array(count),
    ready: new Float64Array(count), begin: new Float64Array(count), end: new Float64Array(count),
    record: new Int32Array(count), holder: new Int32Array(count),
    seq: new Float64Array(count), bytes: new Float64Array(count), blocks: new Uint32Array(count),
  };
  const streamEnd = new Float64Array(texts.streams.length + 1); // the last one: of the host
  let call = 0, seq = 0;
  for (let i = 0; i < count; i++) {
    const sort = spans.sort[i] = reader.number();
    const stream = texts.sorts[sort].stream;
    const lane = stream === NONE ? texts.streams.length : stream;
    const flags = reader.number();
    spans.flags[i] = flags & 15;
    spans.cause[i] = flags >> 4;
    spans.seq[i] = seq += reader.signed();
    if (flags & CALLED) {
      spans.call[i] = call += reader.signed();
      spans.returned[i] = call + reader.number();
      spans.waited[i] = reader.number();
    }
    if (flags & RAN) {
      spans.begin[i] = streamEnd[lane] + reader.signed();
      spans.end[i] = streamEnd[lane] = spans.begin[i] + reader.number();
      spans.ready[i] = spans.begin[i] - reader.signed();
    }
    spans.record[i] = readOther(reader, i);
    spans.holder[i] = readOther(reader, i);
    spans.bytes[i] = reader.number();
    spans.blocks[i] = reader.number();
  }
  return spans;
}



const traces = page.traces.map((texts, i) => ({ texts, spans: readSpans(texts, bytesOf("spans-" + i)), number: i }));

const sortOf = (trace, span) => trace.texts.sorts[trace.spans.sort[span]];
const nameOf = (trace, span) => sortOf(trace, span).name;
const ran = (trace, span) => (trace.spans.flags[span] & RAN) !== 0;
const called = (trace, span) => (trace.spans.flags[span] & CALLED) !== 0;
const hostWaited = (trace, span) => (trace.spans.flags[span] & HOST_WAITED) !== 0;
const hostWorked = (trace, span) => (trace.spans.flags[span] & HOST_WORKED) !== 0;

// ---- in words

function timeText(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
  for (const [size, name] of units)
    if (ns >= size) {
      const value = ns / size;
      return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + " " + name;
    }
  return ns.toFixed(0) + " ns";
}

function bytesText(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (count >= 1024 && i < 4) {
    count /= 1024;
    i++;
  }
  return (i && count < 100 ? count.toFixed(1) : count.toFixed(0)) + " " + units[i];
}

const countText = (count, one, many) => count.toLocaleString("en") + " " + (count === 1 ? one : many);

function placeText(trace, sort) {
  if (sort.file === NONE) return "";
  const file = page.files[sort.file].name;
  return file === trace.texts.script ? "line " + sort.line : file + ":" + sort.line;
}

// The rank that called; NONE: no rank, or the trace is not of several ranks.
const rankOf = (trace, span) => sortOf(trace, span).rank ?? NONE;
const hostName = (rank) => rank === NONE ? "host" : "host of rank " + rank;
function streamLabel(trace, stream) {
  const { name, device } = trace.texts.streams[stream];
  return trace.texts.devices < 2 ? name : "gpu" + device + " " + name.replace(/ of device .*/, "");
}
const streamName = (trace, sort) => sort.stream === NONE ? hostName(sort.rank ?? NONE)
  : sort.rank !== undefined ? streamLabel(trace, sort.stream) : trace.texts.streams[sort.stream].name;

// What a record, a wait or a synchronise is about.
function objectText(trace, span) {
  const sort = sortOf(trace, span), record = trace.spans.record[span];
  if (sort.object !== null) return "event `" + sort.object + "`";
  const about = record === NONE ? sort : sortOf(trace, record);
  return about.stream === NONE ? "the device" : "stream `" + streamName(trace, about) + "`";
}

// Why it began no sooner: the same words as on a terminal (draw/lanes.c has them).
function causeText(trace, span) {
  const cause = page.causes[trace.spans.cause[span]], holder = trace.spans.holder[span];
  if (!trace.spans.cause[span]) return "";
  if (cause.shows === "nothing") return cause.words;
  if (holder === NONE) return cause.words + "something that is not in the trace";
  const place = placeText(trace, sortOf(trace, holder));
  return cause.words + (cause.shows === "object" ? objectText(trace, holder) : nameOf(trace, holder)) +
    (place ? " (" + place + ")" : "");
}
