// Draws what can be seen of the lanes. Each frame looks at a few bars for each pixel, however many there are: bars that share
// a pixel are one, whose strength says how much of the time is covered.

const canvas = document.getElementById("canvas"), overview = document.getElementById("overview");
const viewport = document.getElementById("view");
const CHARACTER = 6.7, BAR_FONT = "11px ui-monospace, Menlo, Consolas, monospace";
const TEXT_FONT = "12px system-ui, sans-serif", BOLD_FONT = "600 12px system-ui, sans-serif";
const MOST_BEHIND = 1000, LEAST_BAR = 1.5;
const LEAST_ALONE = 0.5; // of a pixel: what takes less of it is no line of full height

const view = { t0: 0, t1: duration, width: 0, height: 0, gutter: 150, ratio: 1, scroll: 0 };
let colors = {};

const xOf = (time) => view.gutter + (time - view.t0) / (view.t1 - view.t0) * (view.width - view.gutter);
const timeOf = (x) => view.t0 + (x - view.gutter) / (view.width - view.gutter) * (view.t1 - view.t0);
const topOf = (lane) => AXIS + lane.y - view.scroll;

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "panel", "line", "text", "dim", "faint", "accent", "select", "hazard", "arrow", "lane",
    "bar-text", "wait-text", ...page.looks.map((look) => look.word)];
  colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

// The context of a canvas of that size. Setting a size clears the canvas and costs time, even if it is the same.
function fit(element, width, height) {
  const w = Math.round(width * view.ratio), h = Math.round(height * view.ratio);
  if (element.width !== w || element.height !== h) {
    element.width = w;
    element.height = h;
    element.style.width = width + "px";
    element.style.height = height + "px";
  }
  const context = element.getContext("2d");
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  return context;
}

// ---- the axis

function niceStep(least) {
  let step = 1;
  for (let i = 0; step < least; i++) step *= i % 3 === 1 ? 2.5 : 2;
  return step;
}

function ticks() {
  const least = (view.t1 - view.t0) / Math.max(2, (view.width - view.gutter) / 90), step = niceStep(least), list = [];
  for (let t = Math.ceil(view.t0 / step) * step; t <= view.t1; t += step) list.push(t);
  return { step, list };
}

function drawGrid(g) {
  g.strokeStyle = colors.line;
  g.beginPath();
  for (const t of ticks().list) {
    const x = Math.round(xOf(t)) + 0.5;
    g.moveTo(x, AXIS);
    g.lineTo(x, view.height);
  }
  g.stroke();
}

function drawAxis(g) {
  const { step, list } = ticks(), unit = view.t1 >= 1e9 ? 1e9 : view.t1 >= 1e6 ? 1e6 : view.t1 >= 1e3 ? 1e3 : 1;
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / step) - 1e-9)));
  g.fillStyle = colors.panel;
  g.fillRect(0, 0, view.width, AXIS);
  g.font = TEXT_FONT;
  g.textBaseline = "middle";
  g.fillStyle = colors.dim;
  g.strokeStyle = colors.line;
  g.textAlign = "right";
  g.fillText({ 1e9: "s", 1e6: "ms", 1e3: "us", 1: "ns" }[unit], view.gutter - 10, AXIS / 2);
  g.textAlign = "left";
  g.beginPath();
  for (const t of list) {
    const x = Math.round(xOf(t)) + 0.5, text = (t / unit).toFixed(decimals);
    if (x < view.gutter) continue;
    g.moveTo(x, AXIS - 7);
    g.lineTo(x, AXIS);
    if (x + 4 + text.length * 7 < view.width) g.fillText(text, x + 4, AXIS / 2);
  }
  g.moveTo(0, AXIS - 0.5);
  g.lineTo(view.width, AXIS - 0.5);
  g.stroke();
}

// ---- bars

function drawName(g, name, x, y, width, color) {
  const shown = Math.floor((width - 8) / CHARACTER);
  if (shown < 2) return;
  g.fillStyle = color;
  g.font = BAR_FONT;
  g.textBaseline = "middle";
  g.textAlign = "center";
  const text = name.length <= shown ? name : name.slice(0, shown - 1) + "\u2026";
  g.fillText(text, x + width / 2, y + ROW / 2 + 0.5, width - 4);
}

function drawBar(g, lane, i, x0, x1) {
  const look = lookOf(lane, lane.spans[i]), y = topOf(lane) + lane.row[i] * (ROW + ROW_SPACE);
  const left = Math.max(x0, view.gutter - 4), right = Math.min(x1, view.width + 4);
  const width = Math.max(1, right - left - (right - left > 4 ? 1 : 0));
  g.fillStyle = colors[look.word];
  if (look === page.looks[page.hostCall]) {
    g.fillRect(left, y + 5, width, ROW - 10);
    return;
  }
  if (width > 6) {
    g.beginPath();
    g.roundRect(left, y, width, ROW, 3);
    g.fill();
  } else g.fillRect(left, y, width, ROW);
  const isWait = look === page.looks[page.hostWait];
  drawName(g, nameOf(lane.trace, lane.spans[i]), left, y, width, colors[isWait ? "wait-text" : "bar-text"]);
}

function drawGap(g, lane, i) {
  const gap = gapBefore(lane, i);
  if (!gap) return;
  const x0 = Math.max(xOf(gap.from), view.gutter), x1 = Math.min(xOf(gap.to), view.width);
  if (x1 - x0 < 4) return;
  const y = topOf(lane) + lane.row[i] * (ROW + ROW_SPACE) + ROW / 2;
  g.strokeStyle = colors.faint;
  g.setLineDash([2, 3]);
  g.beginPath();
  g.moveTo(x0 + 1, y + 0.5);
  g.lineTo(x1 - 1, y + 0.5);
  g.stroke();
  g.setLineDash([]);
  const text = causeText(lane.trace, lane.spans[i]);
  if (text.length * 6.1 + 12 > x1 - x0) return;
  g.font = TEXT_FONT;
  g.textAlign = "center";
  g.textBaseline = "middle";
  const width = g.measureText(text).width + 10;
  g.fillStyle = colors.lane;
  g.fillRect((x0 + x1 - width) / 2, y - 8, width, 16);
  g.fillStyle = colors.dim;
  g.fillText(text, (x0 + x1) / 2, y + 0.5);
}

// The look that takes most of the time of bars i to j, of a few of them.
const timeOfLook = new Float64Array(page.looks.length);

function mainLook(lane, i, j) {
  const step = Math.max(1, (j - i) >> 2);
  let best = lookNumber(lane, lane.spans[i]);
  timeOfLook.fill(0);
  for (let k = i; k < j; k += step) {
    const look = lookNumber(lane, lane.spans[k]);
    timeOfLook[look] += lane.end[k] - lane.begin[k];
    if (timeOfLook[look] > timeOfLook[best]) best = look;
  }
  return page.looks[best];
}

// Bars i to j share the pixel at x: a line that is as high as they are busy, and can always be seen.
const LEAST_HEIGHT = 3;

function drawMerged(g, lane, i, j, x) {
  const look = mainLook(lane, i, j), isCall = look === page.looks[page.hostCall];
  const covered = (lane.sum[j] - lane.sum[i]) / (timeOf(x + 1) - timeOf(x));
  const most = isCall ? ROW - 10 : lane.height, height = Math.max(LEAST_HEIGHT, Math.min(1, covered) * most);
  g.fillStyle = colors[look.word];
  g.fillRect(x, topOf(lane) + (isCall ? 5 : 0) + most - height, 1, height);
}

let faded = 1; // less while something else is marked

function drawLane(g, lane) {
  const n = lane.spans.length;
  for (let i = firstEndingAfter(lane, view.t0); i < n && lane.begin[i] < view.t1;) {
    const x0 = xOf(lane.begin[i]), x1 = xOf(lane.end[i]), pixel = Math.floor(x0);
    if (x1 - x0 >= LEAST_BAR) {
      drawGap(g, lane, i);
      drawBar(g, lane, i++, x0, x1);
      continue;
    }
    let j = firstBehind(lane, i, timeOf(pixel + 1));
    if (j - i > 1 && xOf(lane.end[j - 1]) - pixel >= LEAST_BAR + 1) j--; // the last one is no short one
    if (j - i > 1 || x1 - x0 < LEAST_ALONE) drawMerged(g, lane, i, j, pixel);
    else {
      drawGap(g, lane, i);
      drawBar(g, lane, i, x0, Math.max(x1, x0 + 1));
    }
    i = j;
  }
}

// ---- what is marked: a line of the script, or what was searched for

const marked = { lists: null }; // of each trace: { trace, byLane: the positions of bars in each lane }

function drawMarked(g) {
  if (!marked.lists) return;
  for (const list of marked.lists)
    for (const lane of lanes) {
      if (lane.trace !== list.trace) continue;
      const own = list.byLane.get(lane);
      if (!own) continue;
      let last = -1;
      for (let k = firstWhere(own.length, (m) => lane.latest[own[m]] > view.t0); k < own.length; k++) {
        const i = own[k];
        if (lane.begin[i] >= view.t1) break;
        const x0 = xOf(lane.begin[i]), x1 = Math.max(xOf(lane.end[i]), x0 + 1);
        if (x1 < last + 1 || x1 < view.gutter) continue;
        drawBar(g, lane, i, x0, x1);
        last = x1;
      }
    }
}

// ---- links

function arrowHead(g, x, y, down) {
  const s = down ? -6 : 6;
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x - 3.5, y + s);
  g.lineTo(x + 3.5, y + s);
  g.fill();
}

function drawEdge(g, edge) {
  const from = lanes[edge.from], to = lanes[edge.to], down = edge.to > edge.from;
  const x0 = xOf(edge.begin), x1 = xOf(edge.end);
  const y0 = topOf(from) + (down ? from.height : 0), y1 = topOf(to) + (down ? 0 : to.height);
  const bend = down ? LANE_SPACE / 2 : -LANE_SPACE / 2;
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x0, y0 + bend);
  g.lineTo(x1, y0 + bend);
  g.lineTo(x1, y1);
  g.stroke();
  arrowHead(g, x1, y1, down);
}

// Those of the same two lanes that would touch each other are one. Where there are many, they are faint and further apart.
function drawEdges(g) {
  const first = firstWhere(edges.length, (k) => edges[k].end >= view.t0);
  const last = firstWhere(edges.length, (k) => edges[k].end > view.t1);
  const dense = last - first > view.width / 4, apart = dense ? 14 : 3, seen = new Map();
  g.strokeStyle = g.fillStyle = colors.arrow;
  g.lineWidth = 1;
  g.globalAlpha = dense ? 0.45 : 1;
  const draw = (edge) => {
    const key = edge.from * lanes.length + edge.to, x = Math.floor(xOf(edge.end) / apart);
    if (seen.get(key) === x) return;
    seen.set(key, x);
    drawEdge(g, edge);
  };
  for (let i = first; i < last; i++) draw(edges[i]);
  // Those that end behind what is shown, and begin before that.
  for (let i = last; i < Math.min(edges.length, last + MOST_BEHIND); i++) if (edges[i].begin < view.t1) draw(edges[i]);
  g.globalAlpha = 1;
}

// The middle of what can be seen of a span's bar; null: it has none.
function boxOf(trace, span, onHost) {
  const found = findInLane(trace, span, onHost);
  if (!found) return null;
  const lane = lanes[found.lane], i = found.index;
  const x0 = xOf(lane.begin[i]), x1 = Math.max(xOf(lane.end[i]), x0 + 1);
  return { x0, x1, y0: topOf(lane) + lane.row[i] * (ROW + ROW_SPACE), y1: topOf(lane) + lane.row[i] * (ROW + ROW_SPACE) + ROW,
    lane: found.lane };
}

function link(g, a, b) {
  const down = b.lane >= a.lane, y0 = down ? a.y1 : a.y0, y1 = b.lane === a.lane ? b.y1 : down ? b.y0 : b.y1;
  const x0 = (a.x0 + a.x1) / 2, x1 = (b.x0 + b.x1) / 2, bend = Math.min(40, 12 + Math.abs(y1 - y0) / 2);
  g.beginPath();
  g.moveTo(x0, y0);
  g.bezierCurveTo(x0, y0 + (down ? bend : -bend), x1, y1 + (down && b.lane !== a.lane ? -bend : bend), x1, y1);
  g.stroke();
  return { x0, y0, x1, y1, down };
}

function drawHazards(g) {
  for (const trace of traces.filter(isShown))
    for (const hazard of trace.texts.hazards) {
      const a = hazard.first !== NONE && boxOf(trace, hazard.first), b = hazard.second !== NONE && boxOf(trace, hazard.second);
      g.strokeStyle = g.fillStyle = colors.hazard;
      g.lineWidth = 2;
      for (const box of [a, b]) if (box) g.strokeRect(box.x0 - 1, box.y0 - 1, box.x1 - box.x0 + 1, box.y1 - box.y0 + 2);
      if (!a || !b) continue;
      g.setLineDash([5, 3]);
      const ends = link(g, a, b);
      g.setLineDash([]);
      for (const [x, y] of [[ends.x0, ends.y0], [ends.x1, ends.y1]]) {
        g.beginPath();
        g.arc(x, y, 3.5, 0, 7);
        g.fill();
      }
    }
  g.lineWidth = 1;
}

// The bar itself, the call that asked for it, and what it waited for.
function drawSelected(g, selected) {
  if (!selected) return;
  const { trace, span } = selected, box = boxOf(trace, span, selected.onHost);
  if (!box) return;
  g.strokeStyle = colors.select;
  g.lineWidth = 2;
  g.strokeRect(box.x0 - 1.5, box.y0 - 1.5, box.x1 - box.x0 + 2, box.y1 - box.y0 + 3);
  const holder = trace.spans.holder[span], others = [];
  if (called(trace, span) && ran(trace, span)) others.push(boxOf(trace, span, !selected.onHost));
  if (holder !== NONE) others.push(boxOf(trace, holder));
  g.setLineDash([4, 3]);
  for (const other of others) if (other && other.lane !== box.lane) link(g, other, box);
  g.setLineDash([]);
  g.lineWidth = 1;
}

// ---- the whole

function drawLabels(g) {
  g.fillStyle = colors.ground;
  g.fillRect(0, AXIS, view.gutter, view.height);
  g.textBaseline = "middle";
  g.textAlign = "left";
  const characters = Math.floor((view.gutter - 16) / 6.6);
  for (const lane of lanes) {
    if (lane.heading !== undefined) {
      g.font = BOLD_FONT;
      g.fillStyle = colors.text;
      g.fillText(lane.trace.texts.label, 10, AXIS + lane.heading - view.scroll + SECTION / 2);
    }
    g.font = TEXT_FONT;
    g.fillStyle = isOnHost(lane) ? colors.dim : colors.text;
    const text = lane.label.length > characters ? lane.label.slice(0, characters - 1) + "\u2026" : lane.label;
    g.fillText(text, 10, topOf(lane) + lane.height / 2, view.gutter - 14);
  }
}

function drawTimeline(selected, showsArrows) {
  const g = fit(canvas, view.width, view.height);
  g.fillStyle = colors.ground;
  g.fillRect(0, 0, view.width, view.height);
  g.save();
  g.beginPath();
  g.rect(0, AXIS, view.width, view.height - AXIS);
  g.clip();
  const visible = lanes.filter((lane) => topOf(lane) < view.height && topOf(lane) + lane.height > AXIS);
  g.fillStyle = colors.lane;
  for (const lane of visible) g.fillRect(view.gutter, topOf(lane), view.width - view.gutter, lane.height);
  drawGrid(g);
  faded = g.globalAlpha = marked.lists ? 0.25 : 1;
  for (const lane of visible) drawLane(g, lane);
  g.globalAlpha = 1;
  drawMarked(g);
  if (showsArrows) drawEdges(g);
  drawHazards(g);
  drawSelected(g, selected);
  drawLabels(g);
  g.restore();
  drawAxis(g);
}

// ---- the overview: for each pixel of the whole, how busy the streams are

let shape = null; // of the widths that it was made for

function overviewShape(width) {
  if (shape && shape.width === width && shape.outcome === shownOutcome) return shape;
  const sums = new Float64Array(width), perPixel = duration / width, streams = lanes.filter((lane) => !isOnHost(lane) && isShown(lane.trace));
  for (const lane of streams)
    for (let x = 0; x < width; x++) {
      const from = firstWhere(lane.spans.length, (i) => lane.latest[i] > x * perPixel);
      const to = firstWhere(lane.spans.length, (i) => lane.begin[i] >= (x + 1) * perPixel);
      if (to <= from) continue;
      const cut = Math.max(0, x * perPixel - lane.begin[from]) + Math.max(0, lane.end[to - 1] - (x + 1) * perPixel);
      sums[x] += Math.max(0, Math.min(perPixel, lane.sum[to] - lane.sum[from] - cut));
    }
  shape = { width, outcome: shownOutcome, sums, most: Math.max(1, streams.length) * perPixel };
  return shape;
}

const backdrop = document.createElement("canvas"); // the shape in the colours of the theme
let backdropIs = ""; // of which width, theme, ...

function drawBackdrop(width, height) {
  const wanted = [width, shownOutcome, view.gutter, view.ratio, colors.panel, colors.kernel].join();
  if (backdropIs === wanted) return;
  backdropIs = wanted;
  const g = fit(backdrop, width, height), { sums, most } = overviewShape(Math.floor(width - view.gutter));
  g.fillStyle = colors.panel;
  g.fillRect(0, 0, width, height);
  g.fillStyle = colors.kernel;
  for (let x = 0; x < sums.length; x++) {
    const h = sums[x] ? Math.max(1, sums[x] / most * (height - 6)) : 0;
    g.fillRect(view.gutter + x, height - 1 - h, 1, h);
  }
}

const overviewX = (time) => view.gutter + time / duration * (view.width - view.gutter);
const overviewTime = (x) => (x - view.gutter) / (view.width - view.gutter) * duration;

function drawOverview() {
  const width = view.width, height = 34, g = fit(overview, width, height);
  drawBackdrop(width, height);
  g.drawImage(backdrop, 0, 0, width, height);
  const x0 = Math.max(view.gutter, overviewX(view.t0)), x1 = Math.min(width, overviewX(view.t1));
  g.globalAlpha = 0.7;
  g.fillStyle = colors.ground;
  g.fillRect(view.gutter, 0, x0 - view.gutter, height);
  g.fillRect(x1, 0, width - x1, height);
  g.globalAlpha = 1;
  g.strokeStyle = colors.accent;
  g.strokeRect(Math.min(x0, width - 4) + 0.5, 0.5, Math.max(3, x1 - x0 - 1), height - 1);
}
