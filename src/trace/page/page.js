// What a person does: zoom, move, select, mark, search. All of it changes `view`, `selected` and `marked`, and asks for a new
// frame; nothing else draws.

const $ = (id) => document.getElementById(id);
let selected = null; // { trace, span, onHost }
let showsArrows = true, theme = "system", printing = false, waiting = false;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    paint();
  });
}

function paint() {
  drawTimeline(selected, showsArrows);
  drawOverview();
}

// ---- size and theme

// Room for the names of some lanes.
const roomFor = (some) => 24 + 6.8 * Math.max(...some.map((lane) => lane.label.length));

// The rank at the end of a host's name is always to be seen.
function resize() {
  const width = viewport.clientWidth, hosts = lanes.filter((lane) => isOnHost(lane) && lane.rank !== NONE);
  view.gutter = Math.min(190, Math.max(64, roomFor(hosts), Math.min(width * 0.22, roomFor(lanes))));
  view.width = printing ? 1000 : width;
  view.ratio = printing ? 3 : Math.min(3, window.devicePixelRatio || 1);
  const wanted = AXIS + contentHeight;
  view.height = printing ? wanted : Math.max(120, Math.min(wanted, Math.floor(window.innerHeight * 0.62)));
  viewport.style.height = view.height + "px";
  $("spacer").style.height = Math.max(0, wanted - view.height) + "px";
  view.scroll = printing ? 0 : viewport.scrollTop;
  redraw();
}

function applyTheme() {
  const dark = !printing && (theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches));
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = "Theme: " + theme;
  readColors();
  redraw();
}

// ---- zoom and movement

function show(t0, t1) {
  const least = Math.min(duration, 20), width = Math.min(Math.max(t1 - t0, least), duration * 1.02);
  const middle = (t0 + t1) / 2;
  view.t0 = Math.min(Math.max(middle - width / 2, -duration * 0.01), duration * 1.01 - width);
  view.t1 = view.t0 + width;
  redraw();
}

function zoom(factor, time = (view.t0 + view.t1) / 2) {
  show(time - (time - view.t0) * factor, time + (view.t1 - time) * factor);
}

function move(part) {
  show(view.t0 + (view.t1 - view.t0) * part, view.t1 + (view.t1 - view.t0) * part);
}

function fitAll() {
  show(-duration * 0.01, duration * 1.01);
}

// ---- marks: the spans of some sorts, sorted out by lane

function mark(matches) {
  if (!matches) {
    marked.lists = null;
    redraw();
    return 0;
  }
  let count = 0;
  marked.lists = traces.map((trace) => {
    const wanted = trace.texts.sorts.map((sort) => matches(sort)), byLane = new Map();
    for (const lane of lanes) {
      if (lane.trace !== trace) continue;
      const own = [];
      for (let i = 0; i < lane.spans.length; i++) if (wanted[trace.spans.sort[lane.spans[i]]]) own.push(i);
      if (own.length) byLane.set(lane, own);
    }
    for (let i = 0; i < trace.spans.count; i++) if (wanted[trace.spans.sort[i]]) count++;
    return { trace, byLane };
  });
  redraw();
  return count;
}

let markedLine = null;

function onLine(file, line) {
  const again = markedLine && markedLine.file === file && markedLine.line === line;
  markedLine = again ? null : { file, line };
  $("find").value = $("found").textContent = "";
  markLine(file, again ? -1 : line);
  mark(again ? null : (sort) => sort.file === file && sort.line === line);
}

function unmark() {
  markedLine = null;
  $("find").value = $("found").textContent = "";
  mark(null);
}

// ---- selection

function describe(trace, span) {
  const sort = sortOf(trace, span), place = placeText(trace, sort), { spans } = trace;
  const times = ran(trace, span) ? [spans.begin[span], spans.end[span]] : [spans.call[span], spans.returned[span]];
  return [nameOf(trace, span), "on " + streamName(trace, sort), place,
    "from " + timeText(times[0]) + " for " + timeText(times[1] - times[0]), causeText(trace, span)].filter(Boolean).join(", ");
}

function select(trace, span, onHost, reveal) {
  selected = { trace, span, onHost: Boolean(onHost) };
  const found = findInLane(trace, span, onHost), sort = sortOf(trace, span), current = $("current");
  current.textContent = describe(trace, span);
  current.setAttribute("aria-selected", "true");
  if (found) {
    current.setAttribute("aria-posinset", found.index + 1);
    current.setAttribute("aria-setsize", lanes[found.lane].spans.length);
    if (reveal) revealBar(lanes[found.lane], found.index);
  }
  if (sort.file !== NONE) {
    showFile(sort.file, onLine);
    markLine(sort.file, sort.line);
  }
  showDetails();
  redraw();
}

function deselect() {
  selected = null;
  $("current").textContent = "no operation is selected";
  $("current").setAttribute("aria-selected", "false");
  markLine(NONE, NONE);
  unmark();
  showDetails();
}

function revealBar(lane, i) {
  const begin = lane.begin[i], end = lane.end[i], width = view.t1 - view.t0;
  if (end < view.t0 + width * 0.02 || begin > view.t1 - width * 0.02) show(begin - width / 2, begin + width / 2);
  const top = lane.y, bottom = lane.y + lane.height + LANE_SPACE, room = view.height - AXIS;
  if (top < view.scroll) viewport.scrollTop = top;
  else if (bottom > view.scroll + room) viewport.scrollTop = bottom - room;
}

function zoomToSelected() {
  const found = selected && findInLane(selected.trace, selected.span, selected.onHost);
  if (!found) return;
  const lane = lanes[found.lane], i = found.index, margin = Math.max(lane.end[i] - lane.begin[i], 10) * 1.5;
  show(lane.begin[i] - margin, lane.end[i] + margin);
}

// The nearest bar of a lane to a time; -1: the lane is empty.
function nearest(lane, time) {
  const n = lane.spans.length, after = firstBeginningAt(lane, time);
  if (!n) return -1;
  if (after === 0) return 0;
  if (after === n) return n - 1;
  return lane.end[after - 1] >= time || time - lane.end[after - 1] < lane.begin[after] - time ? after - 1 : after;
}

function step(dx, dy, toEnd) {
  let found = selected && findInLane(selected.trace, selected.span, selected.onHost);
  if (!found) {
    const first = lanes.findIndex((lane) => !isOnHost(lane) && lane.spans.length);
    const number = first >= 0 ? first : lanes.findIndex((lane) => lane.spans.length);
    if (number < 0) return;
    found = { lane: number, index: Math.min(firstEndingAfter(lanes[number], view.t0), lanes[number].spans.length - 1) };
    dx = dy = 0;
  }
  let { lane, index } = found;
  if (dy) {
    const time = (lanes[lane].begin[index] + lanes[lane].end[index]) / 2;
    do lane += dy; while (lanes[lane] && (!lanes[lane].spans.length || !isShown(lanes[lane].trace)));
    if (!lanes[lane]) return;
    index = nearest(lanes[lane], time);
  }
  const last = lanes[lane].spans.length - 1;
  index = toEnd ? (dx < 0 ? 0 : last) : Math.min(Math.max(index + dx, 0), last);
  select(lanes[lane].trace, lanes[lane].spans[index], isOnHost(lanes[lane]), true);
}

// ---- details

function goTo(trace, span, text) {
  const button = make("button", { className: "link", type: "button", textContent: text });
  button.addEventListener("click", () => select(trace, span, false, true));
  return button;
}

function lineLink(trace, sort) {
  const button = make("button", { className: "link", type: "button", textContent: placeText(trace, sort) });
  button.addEventListener("click", () => onLine(sort.file, sort.line));
  return button;
}

function detailRows(trace, span) {
  const { spans } = trace, sort = sortOf(trace, span), list = [];
  const row = (name, ...value) => list.push([name, value]);
  row("asked for by", sort.file === NONE ? "no line of the script" : lineLink(trace, sort));
  row("stream", streamName(trace, sort));
  if (sort.rank !== undefined) row("rank", String(sort.rank));
  if (sort.object !== null) row("event", sort.object);
  if (sort.look !== NONE) row("carried out as", page.looks[sort.look].legend);
  if (called(trace, span))
    row("call", timeText(spans.call[span]) + " to " + timeText(spans.returned[span]) +
      (spans.waited[span] ? ", of which the host waited " + timeText(spans.waited[span]) : ""));
  if (ran(trace, span)) {
    const time = spans.end[span] - spans.begin[span];
    row("on the device", time ? timeText(spans.begin[span]) + " to " + timeText(spans.end[span]) + ": " + timeText(time)
      : "at " + timeText(spans.end[span]));
    if (spans.bytes[span])
      row("bytes", bytesText(spans.bytes[span]) + (time ? ", " + (spans.bytes[span] / time).toFixed(1) + " GB/s" : ""));
  } else if (sort.look !== NONE) row("on the device", "not yet, or not known");
  if (spans.blocks[span]) row("thread blocks", spans.blocks[span].toLocaleString("en"));
  if (spans.cause[span])
    row("why not sooner", spans.holder[span] === NONE ? causeText(trace, span) : goTo(trace, spans.holder[span], causeText(trace, span)));
  if (spans.record[span] !== NONE) row("waits for", goTo(trace, spans.record[span], objectText(trace, span) + ", recorded at " +
    (placeText(trace, sortOf(trace, spans.record[span])) || "no line") + " on " + streamName(trace, sortOf(trace, spans.record[span]))));
  row("number", spans.seq[span].toLocaleString("en"));
  return list;
}

// While nothing is selected: which lines took the time, and how busy the streams were.
const MOST_LINES = 12;

function tableOf(titles, rows) {
  const head = make("tr", {}, ...titles.map((title) => make("th", { textContent: title, scope: "col" })));
  return make("table", {}, make("thead", {}, head),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell))))));
}

function busiest(trace) {
  const list = trace.texts.sorts.map((sort, i) => ({ sort, ...trace.perSort[i] })).filter((entry) => entry.time);
  list.sort((a, b) => b.time - a.time);
  return list.slice(0, MOST_LINES).map(({ sort, count, time }) => [sort.name, streamName(trace, sort),
    sort.file === NONE ? "" : lineLink(trace, sort), count.toLocaleString("en"), timeText(time / count), timeText(time)]);
}

function laneRows(trace) {
  return lanes.filter((lane) => lane.trace === trace && !isOnHost(lane)).map((lane) => [lane.label,
    lane.spans.length.toLocaleString("en"), timeText(lane.busy), (100 * lane.busy / Math.max(1, trace.texts.duration)).toFixed(0) + " %"]);
}

function summary() {
  const box = make("div", {}, make("p", { className: "none", textContent:
    "Select an operation with a click, or with the arrow keys: here is what it did and what it waited for." }));
  for (const trace of traces.filter(isShown)) {
    const which = trace.texts.label !== null && !page.switches ? " " + trace.texts.label : "";
    const rows = busiest(trace);
    if (!rows.length) continue;
    box.append(make("h3", { textContent: "Where the time went" + which }),
      tableOf(["operation", "stream", "where", "times", "each", "in all"], rows),
      tableOf(["stream", "operations", "busy", "of the whole"], laneRows(trace)));
  }
  return box;
}
let summaryBox = summary();

function showDetails() {
  const box = $("details");
  if (!selected) {
    box.replaceChildren(summaryBox);
    return;
  }
  const { trace, span } = selected, list = make("dl");
  for (const [name, value] of detailRows(trace, span))
    list.append(make("dt", { textContent: name }), make("dd", {}, ...value));
  const title = make("h2", { textContent: nameOf(trace, span) +
    (trace.texts.label === null ? "" : " (" + trace.texts.label + ")") });
  box.replaceChildren(title, list);
  for (const hazard of trace.texts.hazards)
    if (hazard.first === span || hazard.second === span) box.append(hazardText(hazard));
}

// The report as the checker wrote it, without what is beside it anyway: the kind, and the line of keys for programs.
function hazardText(hazard) {
  const text = (hazard.message || "").split("\n").filter((line) => !line.startsWith("kind=")).join("\n")
    .replace("hazard: " + hazard.kind + " ", "").trim();
  const box = make("div", { className: "hazard" }, make("b", { textContent: hazard.kind + " " }), text);
  if (hazard.fix && !text.includes(hazard.fix)) box.append(make("pre", { className: "fix", textContent: hazard.fix }));
  return box;
}

// ---- hazards

const hazards = traces.flatMap((trace) => trace.texts.hazards.map((hazard) => ({ trace, hazard })));
let currentHazard = -1;

function goToHazard(i) {
  const { trace, hazard } = hazards[currentHazard = i];
  if (!isShown(trace)) showOutcome(trace.number);
  const span = hazard.second === NONE ? hazard.first : hazard.second;
  if (span !== NONE) select(trace, span, false, true);
}

function showHazards() {
  const count = hazards.filter(({ trace }) => isShown(trace)).length, list = make("ol");
  $("hazards").hidden = !count;
  hazards.forEach(({ trace, hazard }, i) => {
    if (!isShown(trace)) return;
    const button = make("button", { type: "button" }, hazardText(hazard));
    button.addEventListener("click", () => goToHazard(i));
    list.append(make("li", {}, button));
  });
  $("hazards").replaceChildren(make("h2", { textContent: countText(count, "hazard", "hazards") }), list);
}

// ---- search

function find() {
  const wanted = $("find").value.trim().toLowerCase();
  markedLine = null;
  if (!wanted) {
    unmark();
    return;
  }
  $("found").textContent = mark((sort) => sort.name.toLowerCase().includes(wanted)).toLocaleString("en");
}

// Selects the next bar that was found, behind the one that is selected.
function nextFound(direction) {
  const all = [];
  if (!marked.lists) return;
  for (const { byLane } of marked.lists)
    for (const [lane, own] of byLane) {
      const time = selected ? beginOf(lane, selected.span) : view.t0 - 1;
      const at = selected && findInLane(selected.trace, selected.span, selected.onHost);
      const here = at ? lanes[at.lane].begin[at.index] : time;
      const k = direction > 0 ? firstWhere(own.length, (m) => lane.begin[own[m]] > here)
        : firstWhere(own.length, (m) => lane.begin[own[m]] >= here) - 1;
      if (own[k] !== undefined) all.push({ lane, index: own[k] });
    }
  if (!all.length) return;
  const best = all.reduce((a, b) => (direction * (b.lane.begin[b.index] - a.lane.begin[a.index]) < 0 ? b : a));
  select(best.lane.trace, best.lane.spans[best.index], isOnHost(best.lane), true);
}

// ---- words around the timeline

// Operations are what the streams carried out, the bars of their lanes. Calls are what the host asked for.
function countsText(trace) {
  let operations = 0, calls = 0;
  for (const lane of lanes) if (lane.trace === trace) isOnHost(lane) ? calls += lane.spans.length : operations += lane.spans.length;
  return countText(operations, "operation", "operations") + (calls ? ", " + countText(calls, "call of the host", "calls of the host") : "");
}

function factsText(trace) {
  const { texts } = trace;
  return [texts.device, countsText(trace), timeText(texts.duration), texts.how,
    texts.forgotten ? countText(texts.forgotten, "earlier operation is", "earlier operations are") + " not kept" : null]
    .filter(Boolean).join(" \u00b7 ");
}

function showWords() {
  const shown = traces[page.switches ? shownOutcome : traces.length - 1], last = shown.texts;
  $("title").textContent = last.script || "Timeline";
  $("facts").textContent = factsText(shown);
  if (traces.length > 1 && !page.switches) {
    const was = traces[0].texts.duration, is = last.duration, change = Math.abs(was - is);
    $("difference").textContent = was === is ? "Both take equally long: " + timeText(is) + "."
      : "Before: " + timeText(was) + ". After: " + timeText(is) + ". That is " + timeText(change) + (is < was ? " less" : " more") +
        (was ? ": " + (is / was).toPrecision(3) + " times as long." : ".");
    $("difference").hidden = false;
  }
  showLegend();
}

// What is drawn of the whole, and nothing else.
const LEAST_GAP = 4, PLACES = 1000; // of a picture of the usual width

function showLegend() {
  const used = new Set(), pixel = Math.max(...traces.filter(isShown).map((trace) => trace.texts.duration)) / PLACES;
  let waits = false, several = false;
  for (const lane of lanes)
    for (let i = 0; i < lane.spans.length; i++) {
      used.add(lookNumber(lane, lane.spans[i]));
      several = several || (i > 0 && lane.begin[i] - lane.begin[i - 1] < pixel && lane.end[i] - lane.begin[i] < pixel);
      const gap = !waits && gapBefore(lane, i);
      waits = waits || (gap && gap.to - gap.from > LEAST_GAP * pixel);
    }
  const legend = $("legend"), add = (swatch, text) => legend.append(make("span", {}, swatch, text));
  legend.replaceChildren();
  page.looks.forEach((look, i) => {
    if (!used.has(i)) return;
    const swatch = make("i");
    swatch.style.background = "var(--" + look.word + ")";
    add(swatch, look.legend);
  });
  if (several) add(make("i", { className: "several" }), "several short ones: as high as they are busy");
  if (waits) add(make("i", { className: "waits" }), "the stream waits");
  if (edges.some((edge) => isShown(edge.trace))) add(make("i", { className: "arrow" }), "from a record to the wait for it");
  if (hazards.some(({ trace }) => isShown(trace)))
    add(make("i", { className: "missing" }), "a race: nothing orders the two in frames; this edge is missing");
}

// ---- outcomes: one at a time

function showOutcome(number) {
  shownOutcome = number;
  [...$("outcomes").children].forEach((tab, i) => {
    tab.setAttribute("aria-selected", String(i === number));
    tab.tabIndex = i === number ? 0 : -1;
  });
  placeLanes();
  summaryBox = summary();
  selected = null;
  $("current").textContent = "no operation is selected";
  markLine(NONE, NONE);
  unmark();
  showWords();
  showHazards();
  showDetails();
  resize();
}

// The part of the axis in which the two of the race are: they may be short, and what differs is their order.
function showPair(trace) {
  const hazard = trace.texts.hazards[0], spans = hazard ? [hazard.first, hazard.second].filter((span) => span !== NONE && ran(trace, span)) : [];
  if (spans.length < 2) return;
  const begin = Math.min(...spans.map((span) => trace.spans.begin[span])), end = Math.max(...spans.map((span) => trace.spans.end[span]));
  show(begin - 2 * (end - begin), end + 2 * (end - begin));
}

function openOutcomes() {
  document.querySelectorAll(".switch").forEach((element) => { element.hidden = !page.switches; });
  if (!page.switches) return;
  traces.forEach((trace, i) => {
    const tab = make("button", { type: "button", role: "tab", textContent: trace.texts.label });
    tab.setAttribute("aria-controls", "view");
    tab.addEventListener("click", () => showOutcome(i));
    $("outcomes").append(tab);
  });
  $("outcomes").hidden = false;
  showOutcome(0);
  showPair(traces[0]);
  $("outcomes").firstChild.focus();
}

// ---- beginning

function listen() {
  canvas.addEventListener("pointerdown", pointerDown);
  canvas.addEventListener("pointermove", pointerMove);
  canvas.addEventListener("pointerup", pointerUp);
  canvas.addEventListener("pointercancel", pointerUp);
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("dblclick", zoomToSelected);
  viewport.addEventListener("wheel", wheel, { passive: false });
  viewport.addEventListener("scroll", () => {
    view.scroll = viewport.scrollTop;
    redraw();
  });
  overview.addEventListener("pointerdown", overviewDrag);
  overview.addEventListener("pointermove", overviewDrag);
  document.addEventListener("keydown", keyDown);
  $("zoom-in").addEventListener("click", () => zoom(0.6));
  $("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  $("fit").addEventListener("click", fitAll);
  $("keys").addEventListener("click", () => $("help").showModal());
  $("find").addEventListener("input", find);
  $("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextFound(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") viewport.focus();
  });
  $("arrows").addEventListener("click", () => {
    showsArrows = !showsArrows;
    $("arrows").setAttribute("aria-pressed", String(showsArrows));
    redraw();
  });
  $("theme").addEventListener("click", () => {
    theme = { system: "light", light: "dark", dark: "system" }[theme];
    applyTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
  window.addEventListener("resize", resize);
  for (const [name, value] of [["beforeprint", true], ["afterprint", false]])
    window.addEventListener(name, () => {
      printing = value;
      applyTheme();
      resize();
      paint(); // at once: the page is printed before the next frame
    });
}

showWords();
showHazards();
showDetails();
openSource(onLine);
listen();
applyTheme();
fitAll();
openOutcomes();
resize();

// For programs that look at the page.
paint();
window.timeline = { painted: performance.now(), view, traces, lanes, boxOf, select, show, showOutcome, get selected() { return selected; } };
