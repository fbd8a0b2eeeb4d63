// What the pointer and the keys do. Nothing here draws: it changes what is shown, selected and marked by the functions of page.js.

// ---- pointer

function placeIn(element, event) {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

// What is at a place of the canvas; null: nothing.
function barAt(x, y) {
  if (x < view.gutter || y < AXIS) return null;
  const lane = lanes.find((l) => y >= topOf(l) - 2 && y < topOf(l) + l.height + 2);
  if (!lane) return null;
  const reach = timeOf(x + 3) - timeOf(x), time = timeOf(x), row = Math.floor((y - topOf(lane)) / (ROW + ROW_SPACE));
  let best = -1, distance = reach;
  for (let i = firstEndingAfter(lane, time - reach); i < lane.spans.length && lane.begin[i] <= time + reach; i++) {
    const away = Math.max(lane.begin[i] - time, time - lane.end[i], 0);
    if (lane.rows > 1 && lane.row[i] !== row) continue;
    if (away < distance || (away === 0 && best < 0)) [best, distance] = [i, away];
    if (away === 0 && !isOnHost(lane)) break;
    if (i - best > 4096) break; // that many in three pixels: any will do
  }
  return best < 0 ? null : { lane, index: best, span: lane.spans[best] };
}

function showTip(event) {
  const { x, y } = placeIn(canvas, event), at = barAt(x, y), tip = $("tip");
  canvas.classList.toggle("on-bar", Boolean(at));
  tip.hidden = !at;
  if (!at) return;
  const { trace } = at.lane, sort = sortOf(trace, at.span);
  tip.replaceChildren(make("b", { textContent: nameOf(trace, at.span) }),
    [timeText(at.lane.end[at.index] - at.lane.begin[at.index]), placeText(trace, sort), causeText(trace, at.span)].filter(Boolean).join(" \u00b7 "));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - box.width - 6)) + "px";
  tip.style.top = Math.max(4, event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 18) + "px";
}

const pointers = new Map();
let drag = null; // of one pointer: where it began, and what was shown then

function pointerDown(event) {
  if (event.button) return;
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event);
  drag = { x: event.clientX, t0: view.t0, t1: view.t1, moved: false };
}

function pinch(event) {
  const [a, b] = [...pointers.values()], before = Math.abs(a.clientX - b.clientX);
  pointers.set(event.pointerId, event);
  const [c, d] = [...pointers.values()], after = Math.abs(c.clientX - d.clientX);
  drag.moved = true;
  if (before > 10 && after > 10) zoom(before / after, timeOf((c.clientX + d.clientX) / 2 - canvas.getBoundingClientRect().left));
}

function pointerMove(event) {
  if (!pointers.has(event.pointerId)) {
    showTip(event);
    return;
  }
  if (pointers.size === 2) {
    pinch(event);
    return;
  }
  const dx = event.clientX - drag.x;
  if (Math.abs(dx) > 3) drag.moved = true;
  if (!drag.moved) return;
  $("tip").hidden = true;
  canvas.classList.add("dragging");
  const shift = dx / (view.width - view.gutter) * (drag.t1 - drag.t0);
  show(drag.t0 - shift, drag.t1 - shift);
}

function pointerUp(event) {
  pointers.delete(event.pointerId);
  canvas.classList.remove("dragging");
  if (!drag || drag.moved || event.type === "pointercancel") return;
  const { x, y } = placeIn(canvas, event), at = barAt(x, y);
  if (at) select(at.lane.trace, at.span, isOnHost(at.lane));
  else deselect();
}

function wheel(event) {
  const { x } = placeIn(canvas, event);
  if (x < view.gutter && !event.ctrlKey) return; // scrolls the lanes
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
  const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(sideways * unit / (view.width - view.gutter));
  else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit / 300))), timeOf(x));
}

function overviewDrag(event) {
  if (!event.buttons) return;
  overview.setPointerCapture(event.pointerId);
  const time = overviewTime(placeIn(overview, event).x), width = view.t1 - view.t0;
  show(time - width / 2, time + width / 2);
}

// ---- keyboard

const KEYS = {
  ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
  Home: () => step(-1, 0, true), End: () => step(1, 0, true), Enter: zoomToSelected, Escape: deselect,
  PageUp: () => move(-0.8), PageDown: () => move(0.8), a: () => move(-0.2), d: () => move(0.2),
  w: () => zoom(0.7), s: () => zoom(1 / 0.7),
};
const KEYS_ANYWHERE = {
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: fitAll, "/": () => $("find").focus(),
  "?": () => $("help").showModal(), h: () => hazards.length && goToHazard((currentHazard + 1) % hazards.length),
};

// Outcomes: a digit anywhere, arrows in their list.
function switchByKey(event, name, typing) {
  if (!page.switches || typing) return false;
  const inList = $("outcomes").contains(event.target), last = traces.length - 1;
  const to = name >= "1" && name <= "9" ? Number(name) - 1 : !inList ? -1
    : { ArrowLeft: Math.max(0, shownOutcome - 1), ArrowUp: Math.max(0, shownOutcome - 1), Home: 0, End: last,
      ArrowRight: Math.min(last, shownOutcome + 1), ArrowDown: Math.min(last, shownOutcome + 1) }[name] ?? -1;
  if (to < 0 || to > last) return false;
  event.preventDefault();
  showOutcome(to);
  if (inList) $("outcomes").children[to].focus();
  return true;
}

function keyDown(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target.closest("input, select");
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (switchByKey(event, name, typing)) return;
  const inView = event.target === viewport && KEYS[name];
  const action = inView || (!typing && KEYS_ANYWHERE[name]);
  if (!action) return;
  event.preventDefault();
  action();
}
