// The script beside the timeline. A line that asked for something is a button: it marks the bars that it asked for, and a bar
// that is selected marks its line.

const code = document.getElementById("code"), fileChoice = document.getElementById("file");
const rows = new Map(); // "file:line": its element, of the file that is shown
let shownFile = NONE;

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// Of each line: how many operations it asked for, and how long they took on a device, over all traces.
const costs = new Map();
for (const trace of traces) {
  const perSort = trace.perSort = trace.texts.sorts.map(() => ({ count: 0, time: 0 }));
  for (let i = 0; i < trace.spans.count; i++) {
    const cost = perSort[trace.spans.sort[i]];
    cost.count++;
    cost.time += ran(trace, i) ? trace.spans.end[i] - trace.spans.begin[i] : 0;
  }
  trace.texts.sorts.forEach((sort, i) => {
    if (page.switches && trace.number) return; // all outcomes ask for much the same
    const key = sort.file + ":" + sort.line, cost = costs.get(key) || { count: 0, time: 0 };
    cost.count += perSort[i].count;
    cost.time += perSort[i].time;
    costs.set(key, cost);
  });
}

const hazardous = new Set();
for (const trace of traces)
  for (const hazard of trace.texts.hazards)
    for (const span of [hazard.first, hazard.second])
      if (span !== NONE) hazardous.add(sortOf(trace, span).file + ":" + sortOf(trace, span).line);

function rowOf(file, line, text, onLine) {
  const key = file + ":" + line, cost = costs.get(key);
  const parts = [make("span", { className: "number", textContent: line }),
    make("span", { className: "cost", textContent: cost && cost.time ? timeText(cost.time) : "" }),
    make("span", { className: "text", textContent: text })];
  const row = cost ? make("button", { className: "row", type: "button" }, ...parts) : make("div", { className: "row" }, ...parts);
  if (cost) {
    row.title = countText(cost.count, "operation", "operations") + (cost.time ? ", " + timeText(cost.time) + " on the device" : "");
    row.setAttribute("aria-pressed", "false");
    row.addEventListener("click", () => onLine(file, line));
  }
  if (hazardous.has(key)) row.classList.add("hazardous");
  rows.set(key, row);
  return row;
}

function showFile(file, onLine) {
  if (file === shownFile) return;
  shownFile = file;
  rows.clear();
  fileChoice.value = file;
  const { text } = page.files[file];
  if (text === null) {
    code.replaceChildren(make("p", { className: "none", textContent: "The text of this file was not known when the timeline was made." }));
    return;
  }
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  code.replaceChildren(...lines.map((line, i) => rowOf(file, i + 1, line.replace(/\r$/, ""), onLine)));
}

function markLine(file, line) {
  for (const row of code.querySelectorAll(".marked")) {
    row.classList.remove("marked");
    row.setAttribute("aria-pressed", "false");
  }
  const row = rows.get(file + ":" + line);
  if (!row) return;
  row.classList.add("marked");
  row.setAttribute("aria-pressed", "true");
  const top = row.offsetTop - code.offsetTop;
  if (top < code.scrollTop || top + row.offsetHeight > code.scrollTop + code.clientHeight)
    code.scrollTop = top - code.clientHeight / 3;
}

function openSource(onLine) {
  page.files.forEach((file, i) => fileChoice.append(make("option", { value: i, textContent: file.name })));
  fileChoice.addEventListener("change", () => showFile(Number(fileChoice.value), onLine));
  const script = page.files.findIndex((file) => file.name === traces[traces.length - 1].texts.script);
  if (page.files.length) showFile(Math.max(0, script), onLine);
  else code.append(make("p", { className: "none", textContent: "No operation of this trace has a line." }));
}
