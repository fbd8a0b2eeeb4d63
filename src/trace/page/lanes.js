// Lanes: which spans are bars, in which row, and what of them can be seen. A lane holds the numbers of its spans in the order
// of their beginning, and sums that let a million of them be drawn by looking at a few for each pixel.

const ROW = 24, ROW_SPACE = 3, LANE_SPACE = 16, AXIS = 26, SECTION = 30, MOST_ROWS = 250;

const isOnHost = (lane) => lane.stream === NONE;
const beginOf = (lane, span) => isOnHost(lane) ? lane.trace.spans.call[span] : lane.trace.spans.begin[span];
const endOf = (lane, span) => isOnHost(lane) ? lane.trace.spans.returned[span] : lane.trace.spans.end[span];

const lookNumber = (lane, span) => !isOnHost(lane) ? sortOf(lane.trace, span).look
  : hostWaited(lane.trace, span) ? page.hostWait : hostWorked(lane.trace, span) ? page.hostWork : page.hostCall;
const lookOf = (lane, span) => page.looks[lookNumber(lane, span)];

function sortByBegin(lane) {
  let sorted = true;
  for (let i = 1; i < lane.spans.length && sorted; i++)
    sorted = beginOf(lane, lane.spans[i - 1]) <= beginOf(lane, lane.spans[i]);
  if (!sorted) lane.spans.sort((a, b) => beginOf(lane, a) - beginOf(lane, b) || a - b);
}

// Rows for bars that overlap, as measured times may; and for each bar the latest end of it and of those before it, and
// the time that they take together.
function measure(lane) {
  const n = lane.spans.length, ends = new Float64Array(MOST_ROWS);
  lane.begin = new Float64Array(n);
  lane.end = new Float64Array(n);
  lane.latest = new Float64Array(n);
  lane.sum = new Float64Array(n + 1);
  lane.row = new Uint8Array(n);
  lane.rows = 1;
  let latest = 0, busy = 0, covered = 0;
  for (let i = 0; i < n; i++) {
    const begin = lane.begin[i] = beginOf(lane, lane.spans[i]), end = lane.end[i] = endOf(lane, lane.spans[i]);
    let row = 0;
    while (row < MOST_ROWS - 1 && ends[row] > begin) row++;
    ends[row] = Math.max(ends[row], end);
    lane.row[i] = row;
    lane.rows = Math.max(lane.rows, row + 1);
    lane.latest[i] = latest = Math.max(latest, end);
    lane.sum[i + 1] = lane.sum[i] + end - begin;
    if (end > covered) {
      busy += end - Math.max(begin, covered);
      covered = end;
    }
  }
  lane.busy = busy;
}

function makeLane(trace, stream, rank, list) {
  const lane = { trace, stream, rank, spans: list };
  lane.label = stream === NONE ? hostName(rank) : streamLabel(trace, stream);
  sortByBegin(lane);
  measure(lane);
  return lane;
}

// Streams of two ranks may have one name and one device.
function tellRanksApart(lanes) {
  const twins = (a, b) => a.rank !== b.rank && a.label === b.label && !isOnHost(a) && !isOnHost(b);
  const apart = lanes.filter((lane) => lane.rank !== NONE && lanes.some((other) => twins(lane, other)));
  for (const lane of apart) lane.label = "rank " + lane.rank + " " + lane.label;
}

// A host for each rank that called, then the streams. Numbers of streams, and behind them of hosts, count the lists.
function lanesOf(trace) {
  const { spans } = trace, streams = trace.texts.streams.length;
  const ranks = trace.texts.sorts.map((sort) => sort.rank ?? NONE);
  const counts = new Uint32Array(streams + 2 + Math.max(NONE, ...ranks)), hostOf = (i) => streams + 1 + rankOf(trace, i);
  const isBar = (i) => ran(trace, i) && sortOf(trace, i).look !== NONE && sortOf(trace, i).stream !== NONE;
  for (let i = 0; i < spans.count; i++) {
    if (called(trace, i)) counts[hostOf(i)]++;
    if (isBar(i)) counts[sortOf(trace, i).stream]++;
  }
  const lists = Array.from(counts, (count) => new Uint32Array(count)), used = new Uint32Array(counts.length), order = [];
  for (let i = 0; i < spans.count; i++) {
    if (called(trace, i)) lists[hostOf(i)][used[hostOf(i)]++] = i;
    if (!isBar(i)) continue;
    const { stream } = sortOf(trace, i);
    if (!used[stream]) order.push([stream, rankOf(trace, i)]);
    lists[stream][used[stream]++] = i;
  }
  const hosts = lists.slice(streams).map((list, i) => makeLane(trace, NONE, i - 1, list));
  const lanes = hosts.filter((lane) => lane.spans.length || hosts.length === 1);
  for (const [stream, rank] of order) lanes.push(makeLane(trace, stream, rank, lists[stream]));
  tellRanksApart(lanes);
  return lanes;
}

const lanes = traces.flatMap(lanesOf);
const laneOfStream = traces.map((trace) => {
  const map = new Map();
  lanes.forEach((lane, i) => { if (lane.trace === trace && !isOnHost(lane)) map.set(lane.stream, i); });
  return map;
});
const laneOfHost = (trace, span) =>
  lanes.findIndex((lane) => lane.trace === trace && isOnHost(lane) && lane.rank === rankOf(trace, span));

// Of outcomes one is shown at a time, of other traces all.
let shownOutcome = 0;
const isShown = (trace) => !page.switches || trace.number === shownOutcome;

// Positions below the axis; of two traces each has a heading. Lanes that are not shown are far away.
const FAR = -1e7;
let contentHeight = 0;
function placeLanes() {
  let y = 8, last = null;
  for (const lane of lanes) {
    lane.height = lane.rows * (ROW + ROW_SPACE) - ROW_SPACE;
    lane.heading = undefined;
    lane.y = FAR;
    if (!isShown(lane.trace)) continue;
    if (lane.trace !== last && lane.trace.texts.label !== null && !page.switches) {
      lane.heading = y;
      y += SECTION;
    }
    last = lane.trace;
    lane.y = y;
    y += lane.height + LANE_SPACE;
  }
  contentHeight = y;
}
placeLanes();

const duration = Math.max(1, ...traces.map((trace) => trace.texts.duration));

// The first i in [low, high) for which `holds`, which is false up to somewhere and true from there on; else `high`.
function firstIn(low, high, holds) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const firstWhere = (n, holds) => firstIn(0, n, holds);

// The same for bars behind i that begin at `time` or later, where the answer is most often near.
function firstBehind(lane, i, time) {
  const n = lane.spans.length;
  let low = i + 1, step = 1;
  while (low + step < n && lane.begin[low + step] < time) {
    low += step;
    step *= 2;
  }
  return firstIn(low, Math.min(n, low + step + 1), (k) => lane.begin[k] >= time);
}

const firstEndingAfter = (lane, time) => firstWhere(lane.spans.length, (i) => lane.latest[i] > time);
const firstBeginningAt = (lane, time) => firstWhere(lane.spans.length, (i) => lane.begin[i] >= time);

// Where a span is: its lane and position there, or null. `onHost`: its call rather than what the device did.
function findInLane(trace, span, onHost) {
  const host = laneOfHost(trace, span), device = laneOfStream[trace.number].get(sortOf(trace, span).stream);
  for (const number of onHost || !ran(trace, span) || device === undefined ? [host] : [device, host]) {
    const lane = lanes[number];
    if (!lane) continue;
    const time = beginOf(lane, span);
    for (let i = firstBeginningAt(lane, time); i < lane.spans.length && lane.begin[i] === time; i++)
      if (lane.spans[i] === span) return { lane: number, index: i };
  }
  return null;
}

// The time before a bar in which something held the lane up, as draw/lanes.c has it; null: there is none.
function gapBefore(lane, i) {
  const { spans } = lane.trace, span = lane.spans[i], cause = page.causes[spans.cause[span]].word, holder = spans.holder[span];
  if (isOnHost(lane) || cause === "none" || cause === "same-stream" || cause === "host") return null;
  let from = i ? lane.latest[i - 1] : 0;
  if (cause === "synchronize" || cause === "pageable-memory") from = Math.max(from, holder === NONE ? Infinity : spans.call[holder]);
  else if (called(lane.trace, span)) from = Math.max(from, spans.call[span]);
  return from < lane.begin[i] ? { from, to: lane.begin[i] } : null;
}

// ---- arrows from records to waits, by the time at which the wait was over

function edgesOf(trace) {
  const edges = [];
  for (let wait = 0; wait < trace.spans.count; wait++) {
    const record = trace.spans.record[wait];
    if (record === NONE || !ran(trace, wait) || !ran(trace, record)) continue;
    const from = laneOfStream[trace.number].get(sortOf(trace, record).stream);
    const to = laneOfStream[trace.number].get(sortOf(trace, wait).stream);
    if (from === undefined || to === undefined || from === to) continue;
    edges.push({ trace, record, wait, from, to, begin: trace.spans.end[record], end: trace.spans.end[wait] });
  }
  return edges;
}
const edges = traces.flatMap(edgesOf).sort((a, b) => a.end - b.end);
