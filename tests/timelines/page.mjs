// Opens pages of sample traces in a browser and uses them as a person does: looks, hovers, clicks, zooms, moves, types. Prints
// a line a check that failed, and counts.
//
//     node tests/timelines/page.mjs SAMPLE_TRACE [FOLDER]       FOLDER: where screenshots are kept
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBrowser, openBrowser, openTab } from "./browser.mjs";

const [program, pictures] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "millrace-pages-"));
let passed = 0, failed = 0, where = "";

function check(holds, text) {
  if (holds) passed++;
  else {
    failed++;
    console.log("FAIL " + where + ": " + text);
  }
}
const equal = (a, b, text) => check(JSON.stringify(a) === JSON.stringify(b), `${text}: ${JSON.stringify(a)}, expected ${JSON.stringify(b)}`);
const near = (a, b, slack, text) => check(Math.abs(a - b) <= slack, `${text}: ${a}, expected ${b}`);

function write(name) {
  const base = join(folder, name.replace(/\W/g, "_"));
  execFileSync(program, name === "outcomes" ? [name, base + ".html"] : [name, base + ".html", base + ".svg"]);
  return base;
}
function spansOf(name) {
  const path = join(folder, name.replace(/\W/g, "_") + ".spans.json");
  execFileSync(program, [name, path]);
  return JSON.parse(readFileSync(path)).spans;
}

const browser = await openBrowser(findBrowser());

// Opens the page of a sample, hands it to `use`, and looks at what the page complained about.
async function withPage(name, options, use) {
  where = `${name} at ${options.width}${options.dark ? ", dark" : ""}`;
  const page = await openTab(browser, { height: 900, ...options });
  page.text = (id) => page.evaluate(`document.getElementById("${id}").textContent`);
  page.view = () => page.evaluate("({ t0: timeline.view.t0, t1: timeline.view.t1, width: timeline.view.width })");
  // The middle of a span's bar, on the screen.
  page.middleOf = (trace, span) => page.evaluate(`(() => {
    const bar = timeline.boxOf(timeline.traces[${trace}], ${span}), box = document.getElementById("canvas").getBoundingClientRect();
    return bar && { x: box.left + (bar.x0 + bar.x1) / 2, y: box.top + (bar.y0 + bar.y1) / 2 };
  })()`);
  page.pixel = (x, y) => page.evaluate(`(() => {
    const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), copy = document.createElement("canvas");
    const g = copy.getContext("2d");
    g.drawImage(canvas, -Math.round(${x} - box.left), -Math.round(${y} - box.top));
    return [...g.getImageData(0, 0, 1, 1).data];
  })()`);
  await page.go("file://" + (options.path || write(name) + ".html"));
  await use(page);
  if (pictures) writeFileSync(join(pictures, where.replace(/\W+/g, "_") + ".png"), await page.screenshot());
  equal(page.complaints, [], "the console");
  await page.close();
}

// ---- what every page must have, at every width and in both themes

async function checkLayout(page, { width, dark }) {
  const layout = await page.evaluate(`({
    wide: document.documentElement.scrollWidth, inner: innerWidth,
    ground: getComputedStyle(document.body).backgroundColor,
    source: document.getElementById("source").getBoundingClientRect().toJSON(),
    timeline: document.querySelector(".timeline").getBoundingClientRect().toJSON(),
    buttons: [...document.querySelectorAll("button, input, select")].filter((e) => e.offsetParent)
      .map((e) => [e.id || e.className, e.getAttribute("aria-label") || e.textContent || e.labels?.length, e.getBoundingClientRect().right]),
  })`);
  check(layout.wide <= layout.inner, "the page is wider than the window: " + layout.wide);
  equal(layout.ground, dark ? "rgb(18, 21, 28)" : "rgb(255, 255, 255)", "ground");
  if (width >= 900) check(layout.source.left >= layout.timeline.right - 1, "the script is beside the timeline");
  else check(layout.source.top >= layout.timeline.bottom - 1, "the script is below the timeline");
  for (const [id, label, right] of layout.buttons) {
    check(Boolean(label), `${id} has a name for those who do not see it`);
    check(right <= width + 1 || /row/.test(id), `${id} is inside the window`);
  }
}

for (const width of [400, 1000, 2000])
  for (const dark of [false, true]) await withPage("race", { width, dark }, (page) => checkLayout(page, { width, dark }));

// ---- outcomes: one at a time, by the arrow keys, by a digit, by a click

await withPage("outcomes", { width: 1000 }, async (page) => {
  const shown = () => page.evaluate(`timeline.lanes.filter((lane) => lane.y > -1e6).map((lane) => lane.trace.number)`);
  const isOnly = async (number, text) => check((await shown()).every((n) => n === number) && (await shown()).length > 0, text);
  const chosen = () => page.evaluate(`document.querySelector('[role="tab"][aria-selected="true"]').textContent`);
  const hazards = () => page.evaluate(`!document.getElementById("hazards").hidden`);
  equal(await page.evaluate(`[...document.getElementById("outcomes").children].map((e) => e.textContent)`),
    ["outcome 1: 1.0", "outcome 2: </script>"], "their names");
  await isOnly(0, "the first is shown");
  check(await hazards(), "its hazard is listed");
  const facts = await page.text("facts");
  await page.key("ArrowRight");
  await isOnly(1, "the arrow to the right shows the second");
  equal(await chosen(), "outcome 2: </script>", "it is chosen");
  check(!(await hazards()), "it has no hazard");
  check(await page.text("facts") !== facts, "its facts are shown");
  check(await page.text("difference") === "", "no comparison");
  await page.key("ArrowRight");
  await isOnly(1, "there is no third one");
  await page.key("ArrowLeft");
  await isOnly(0, "and back");
  await page.key("2");
  await isOnly(1, "by its number");
  await page.evaluate(`document.getElementById("outcomes").children[0].click()`);
  await isOnly(0, "by a click");
  await page.key("2");
  await page.key("h");
  await isOnly(0, "the next hazard is in the first one");
});

// ---- what a person looks for first

for (const width of [400, 1280])
  await withPage("race", { width, height: 800 }, async (page) => {
    const seen = await page.evaluate(`({
      facts: document.getElementById("facts").textContent,
      bars: timeline.lanes.filter((lane) => lane.stream >= 0).reduce((sum, lane) => sum + lane.spans.length, 0),
      calls: timeline.lanes.filter((lane) => lane.stream < 0).reduce((sum, lane) => sum + lane.spans.length, 0),
      hazards: document.getElementById("hazards").getBoundingClientRect().top, height: innerHeight,
      legend: document.getElementById("legend").textContent,
      cut: [...document.querySelectorAll(".row .text, #details td")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).length,
      scrolls: document.getElementById("code").scrollWidth - document.getElementById("code").clientWidth,
    })`);
    check(seen.facts.includes(`${seen.bars} operation`) && seen.facts.includes(`${seen.calls} call`), "operations and calls: " + seen.facts);
    check(seen.hazards + 60 < seen.height, "hazards are in sight: " + seen.hazards);
    check(seen.legend.includes("this edge is missing"), "the legend explains the edge: " + seen.legend);
    equal(seen.cut, 0, "lines and columns that are cut");
    check(seen.scrolls <= 0, "no line of the script is cut: " + seen.scrolls);
  });

// The legend has what is drawn, and nothing else.
for (const [name, has, hasNot] of [
  ["pipeline", ["kernel", "copy to the device", "the stream waits", "from a record to the wait for it"], ["this edge is missing", "several short ones"]],
  ["race", ["kernel", "this edge is missing"], ["copy to the device", "from a record to the wait", "the host works"]],
  ["dense:2000", ["several short ones"], ["this edge is missing"]],
])
  await withPage(name, { width: 1280 }, async (page) => {
    const legend = await page.text("legend");
    for (const text of has) check(legend.includes(text), text + " is in the legend: " + legend);
    for (const text of hasNot) check(!legend.includes(text), text + " is not in the legend: " + legend);
  });

// As much of a lane is filled as it is busy, however short its operations are.
await withPage("dense:2000", { width: 1000 }, async (page) => {
  const lanes = await page.evaluate(`(() => {
    const canvas = document.getElementById("canvas"), copy = document.createElement("canvas"), { ratio, gutter, width } = timeline.view;
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const g = copy.getContext("2d", { willReadFrequently: true });
    g.drawImage(canvas, 0, 0);
    const ground = getComputedStyle(document.documentElement).getPropertyValue("--lane").trim(), duration = timeline.traces[0].texts.duration;
    return timeline.lanes.filter((lane) => lane.stream >= 0 && lane.rows === 1).map((lane) => {
      const data = g.getImageData(gutter * ratio, (26 + lane.y) * ratio, (width - gutter) * ratio, lane.height * ratio).data;
      let filled = 0;
      for (let i = 0; i < data.length; i += 4) filled += data[i + 2] - data[i] > 60;
      return [lane.busy / duration, filled / (data.length / 4)];
    });
  })()`);
  for (const [busy, filled] of lanes) check(filled < busy + 0.2, `busy ${busy.toFixed(2)}, filled ${filled.toFixed(2)}`);
});

// ---- the spans of the page are those of the trace

for (const name of ["pipeline", "hostile", "random:7", "random:30", "dense:2000"])
  await withPage(name, { width: 1000 }, async (page) => {
    const spans = spansOf(name);
    const rows = await page.evaluate(`(() => {
      const { spans, texts } = timeline.traces[0], rows = [], stream = (i) => i < 0 ? "host" : texts.streams[i].name;
      for (let i = 0; i < spans.count; i++) {
        const sort = texts.sorts[spans.sort[i]], ran = spans.flags[i] & 2, other = (k) => k < 0 ? null : spans.seq[k];
        rows.push([spans.seq[i], sort.name, sort.object, stream(sort.stream), sort.line, spans.call[i], spans.returned[i],
          ran ? spans.begin[i] : null, ran ? spans.end[i] : null, other(spans.record[i]), other(spans.holder[i]),
          spans.bytes[i] || null, spans.blocks[i] || null]);
      }
      return rows;
    })()`);
    const ns = (ms) => ms === null ? null : Math.round(ms * 1e6);
    equal(rows, spans.map((s) => [s.seq, s.name, s.object, s.stream, Number(s.where.match(/\d+$/)[0]), ns(s.call), ns(s.returned),
      ns(s.start), ns(s.finish), s.waits_for, s.holder, s.bytes, s.blocks]), "spans");
  });

// ---- using it

const bar = (spans, name, nth = 0) => spans.map((s, i) => [s, i]).filter(([s]) => s.name === name && s.start !== null)[nth][1];

for (const width of [400, 1000, 2000])
  await withPage("pipeline", { width, dark: width === 1000 }, async (page) => {
    const spans = spansOf("pipeline"), matmul = bar(spans, "matmul", 1), at = await page.middleOf(0, matmul);

    // hover
    await page.mouse("mouseMoved", at.x, at.y);
    await page.frame();
    check((await page.text("tip")).startsWith("matmul420 us"), "the tip says name and duration: " + await page.text("tip"));
    check(await page.evaluate(`!document.getElementById("tip").hidden`), "the tip is shown");
    await page.mouse("mouseMoved", 5, 5);

    // click: details, the line of the script, the words for those who do not see it
    await page.click(at.x, at.y);
    equal(await page.evaluate("timeline.selected && timeline.selected.span"), matmul, "selected by a click");
    const details = await page.text("details");
    for (const part of ["matmul", "line 13", "compute", "kernel", "420 us", "GB/s"]) check(details.includes(part), `details say ${part}: ${details}`);
    equal(await page.evaluate(`[...document.querySelectorAll(".row.marked .number")].map((e) => e.textContent)`), ["13"], "the marked line");
    check((await page.text("current")).startsWith("matmul, on compute, line 13, from "), await page.text("current"));

    // a link of the details leads to what it waited for
    const first = bar(spans, "matmul", 0), firstAt = await page.middleOf(0, first);
    await page.click(firstAt.x, firstAt.y);
    await page.evaluate(`[...document.querySelectorAll("#details .link")].find((e) => e.textContent.startsWith("waits for")).click()`);
    check((await page.text("details")).includes("wait_event"), "the link leads to the wait: " + await page.text("details"));

    // the keyboard
    await page.click(firstAt.x, firstAt.y);
    await page.evaluate(`document.getElementById("view").focus()`);
    await page.key("ArrowRight");
    check((await page.text("current")).startsWith("relu_"), "right: " + await page.text("current"));
    await page.key("ArrowRight");
    check((await page.text("current")).startsWith("matmul"), "right again: " + await page.text("current"));
    await page.key("ArrowLeft");
    check((await page.text("current")).startsWith("relu_"), "left: " + await page.text("current"));
    await page.key("ArrowUp");
    check((await page.text("current")).startsWith("copy_, on copy"), "up: " + await page.text("current"));
    await page.key("ArrowDown");
    await page.key("ArrowDown");
    check((await page.text("current")).startsWith("copy_, on results"), "down: " + await page.text("current"));
    await page.key("End");
    await page.key("Enter");
    let view = await page.view();
    const last = spans[bar(spans, "copy_", 7)];
    check(view.t0 <= last.start * 1e6 && view.t1 >= last.finish * 1e6 && view.t1 - view.t0 < 1e6, "Enter zooms to the last copy");
    await page.key("0");
    const all = await page.view();
    check(all.t0 <= 0 && all.t1 >= last.finish * 1e6, "0 shows everything");
    await page.key("+");
    view = await page.view();
    near(view.t1 - view.t0, (all.t1 - all.t0) * 0.6, 10, "+ zooms in");
    await page.key("-");
    await page.key("Escape");
    equal(await page.evaluate("timeline.selected"), null, "Escape selects nothing");
    equal(await page.evaluate(`document.querySelectorAll(".row.marked").length`), 0, "and marks no line");
    check((await page.text("details")).includes("Where the time went"), "a summary is shown");

    // wheel and drag keep the time under the pointer
    await page.key("0");
    const timeAt = (x) => page.evaluate(`(() => {
      const box = document.getElementById("canvas").getBoundingClientRect(), { t0, t1, gutter, width } = timeline.view;
      return t0 + (${x} - box.left - gutter) / (width - gutter) * (t1 - t0);
    })()`);
    const before = await timeAt(at.x);
    await page.wheel(at.x, at.y, -300);
    view = await page.view();
    check(view.t1 - view.t0 < (all.t1 - all.t0) * 0.5, "the wheel zooms in");
    const pixel = (all.t1 - all.t0) / (0.7 * width); // pointers are at whole pixels
    near(await timeAt(at.x), before, pixel, "the wheel zooms at the pointer");
    await page.drag(at.x, at.y, at.x - 40, at.y);
    near(await timeAt(at.x - 40), before, pixel, "a drag moves what is under the pointer");
    equal(await page.evaluate("timeline.selected"), null, "a drag selects nothing");

    // buttons
    await page.evaluate(`document.getElementById("fit").click()`);
    await page.frame();
    equal(await page.view(), all, "Fit shows everything");
    await page.evaluate(`document.getElementById("zoom-in").click()`);
    await page.frame();
    view = await page.view();
    check(view.t1 - view.t0 < all.t1 - all.t0, "the button zooms in");
    await page.evaluate(`document.getElementById("zoom-out").click(); document.getElementById("fit").click()`);
    await page.frame();

    // a line of the script marks its bars, and dims the others
    const copyAt = await page.middleOf(0, bar(spans, "copy_", 0)), bright = await page.pixel(copyAt.x, copyAt.y - 9);
    await page.evaluate(`[...document.querySelectorAll("button.row")].find((e) => e.querySelector(".number").textContent === "13").click()`);
    await page.frame();
    const dimmed = await page.pixel(copyAt.x, copyAt.y - 9), kept = await page.pixel(firstAt.x, firstAt.y - 9);
    check(JSON.stringify(bright) !== JSON.stringify(dimmed), "other bars are dim");
    check(JSON.stringify(kept) !== JSON.stringify(dimmed), "the line's bars are not");
    await page.evaluate(`document.querySelector("button.row.marked").click()`);
    await page.frame();
    equal(await page.pixel(copyAt.x, copyAt.y - 9), bright, "a second click takes the mark back");

    // search
    await page.evaluate(`(() => { const e = document.getElementById("find"); e.focus(); e.value = "RELU"; e.dispatchEvent(new Event("input")); })()`);
    await page.frame();
    equal(await page.text("found"), "4", "found");
    await page.key("Enter");
    check((await page.text("current")).startsWith("relu_"), "Enter selects the next one");

    // themes
    const theme = () => page.evaluate("document.documentElement.dataset.theme");
    equal(await theme(), width === 1000 ? "dark" : "light", "the system's theme");
    await page.evaluate(`document.getElementById("theme").click()`);
    equal(await theme(), "light", "light");
    await page.evaluate(`document.getElementById("theme").click()`);
    equal(await theme(), "dark", "dark");

    // the list of keys is a dialog that closes
    await page.evaluate(`document.getElementById("view").focus()`);
    await page.key("?");
    check(await page.evaluate(`document.getElementById("help").open`), "? opens the list of keys");
    await page.key("Escape");
    check(await page.evaluate(`!document.getElementById("help").open`), "Escape closes it");
  });

// ---- by Tab alone, everything can be reached, and left again

await withPage("race", { width: 1000 }, async (page) => {
  const reached = [];
  for (let i = 0; i < 40; i++) {
    await page.key("Tab");
    reached.push(await page.evaluate("document.activeElement.id || document.activeElement.className || document.activeElement.tagName"));
  }
  for (const id of ["zoom-in", "fit", "find", "arrows", "theme", "view", "file", "row hazardous"])
    check(reached.some((name) => name.includes(id)), `Tab reaches ${id}: ${reached}`);
});

// ---- hazards

await withPage("race", { width: 1000 }, async (page) => {
  const text = await page.text("hazards");
  for (const part of ["1 hazard", "read-after-write", "consumer:wait_stream(producer)"]) check(text.includes(part), `hazards say ${part}: ${text}`);
  await page.evaluate(`document.querySelector("#hazards li button").click()`);
  await page.frame();
  check((await page.text("details")).startsWith("sum"), "the hazard leads to its second side");
  check((await page.text("details")).includes("consumer:wait_stream(producer)"), "and the fix is beside it");
  equal(await page.evaluate(`[...document.querySelectorAll(".row.hazardous .number")].map((e) => e.textContent)`), ["6", "8"], "lines in red");
  await page.evaluate(`document.getElementById("view").focus()`);
  await page.key("h");
  check((await page.text("current")).startsWith("sum"), "H leads there, too");
});

// ---- names are text

await withPage("hostile", { width: 1000 }, async (page) => {
  equal(await page.evaluate("document.title"), "</script><b>&\"'.lua - timeline", "title");
  equal(await page.evaluate("document.querySelectorAll('b, img').length"), 1, "elements that a name could have made"); // of the hazard
  const spans = spansOf("hostile");
  for (let i = 0; i < spans.length; i++) {
    await page.evaluate(`timeline.select(timeline.traces[0], ${i})`);
    check((await page.text("details")).startsWith(spans[i].name), "the name of span " + i);
  }
  equal(await page.evaluate("document.title.includes('broken')"), false, "no script of a name has run");
});

// ---- two traces, none at all, and paper

await withPage("both", { width: 1000 }, async (page) => {
  check((await page.text("difference")).includes("1.35 ms less: 0.637 times as long"), await page.text("difference"));
  equal(await page.evaluate("timeline.traces.length"), 2, "traces");
  const a = await page.middleOf(0, 1), b = await page.middleOf(1, 1);
  check(a.y < b.y, "before is above after");
  await page.click(a.x, a.y);
  equal(await page.evaluate("timeline.selected.trace.number"), 0, "a bar of the first is selected");
  check((await page.text("details")).includes("(before)"), "and says so");
});
// ---- ranks: a lane for the host of each

for (const width of [400, 1000])
  await withPage("ranks", { width }, async (page) => {
    equal(await page.evaluate("timeline.lanes.map((lane) => lane.label)"),
      ["host", "host of rank 0", "host of rank 1", "copy", "rank 1 copy"], "lanes");
    equal(await page.evaluate("timeline.lanes.map((lane) => lane.rows)"), [1, 1, 1, 1, 1], "no calls over each other");
    check(await page.evaluate("timeline.view.gutter >= 24 + 6.8 * 'host of rank 1'.length"), "room for a host's name");
    check((await page.text("facts")).includes("9 calls of the host"), await page.text("facts"));
    await page.evaluate("timeline.select(timeline.traces[0], 8, true, true)");
    check((await page.text("details")).includes("rank1"), "details: " + await page.text("details"));
    equal(await page.evaluate("timeline.lanes.findIndex((lane) => lane.spans.includes(8))"), 2, "the lane of a call");
    check(await page.evaluate("Boolean(timeline.boxOf(timeline.traces[0], 8, true))"), "it can be found");
  });

await withPage("empty", { width: 1000 }, async (page) => {
  await page.evaluate(`document.getElementById("view").focus()`);
  for (const key of ["ArrowRight", "ArrowDown", "Home", "Enter", "+", "0", "h", "Escape"]) await page.key(key);
  check((await page.text("facts")).includes("0 operations"), await page.text("facts"));
});
await withPage("pipeline", { width: 1000, dark: true }, async (page) => {
  const pdf = await page.pdf();
  if (pictures) writeFileSync(join(pictures, "printed.pdf"), pdf);
  check(pdf.length > 5000 && pdf.subarray(0, 5).toString() === "%PDF-", "it can be printed");
  equal(await page.evaluate("document.documentElement.dataset.theme"), "dark", "and is as before afterwards");
});
for (const name of ["pipeline", "both", "hostile"])
  await withPage(name, { width: 1240, path: write(name) + ".svg" }, async (page) => {
    check(await page.evaluate("document.querySelectorAll('rect.kernel').length") > 0, "the picture has bars");
  });

// ---- a million operations

await withPage("dense:1000000", { width: 1300 }, async (page) => {
  const paint = await page.evaluate("timeline.painted");
  const frames = await page.evaluate(`(async () => {
    const { t0, t1 } = timeline.view, times = [];
    for (let i = 0; i < 40; i++) {
      const width = (t1 - t0) * Math.pow(0.75, i), from = t0 + (t1 - t0) * (i % 10) / 20;
      timeline.show(from, from + width);
      const began = performance.now();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      times.push(performance.now() - began);
    }
    return times.sort((a, b) => a - b);
  })()`);
  const middle = frames[frames.length >> 1];
  // Times are only told: other programs run beside this one. The number of rectangles of a frame does not depend on them.
  const rectangles = await page.evaluate(`(() => {
    const { prototype } = CanvasRenderingContext2D, original = prototype.fillRect;
    let count = 0;
    prototype.fillRect = function (...box) {
      count++;
      original.apply(this, box);
    };
    return new Promise((done) => {
      document.getElementById("fit").click();
      requestAnimationFrame(() => requestAnimationFrame(() => {
        prototype.fillRect = original;
        done(count);
      }));
    });
  })()`);
  check(rectangles > 2000 && rectangles < 20000, `${rectangles} rectangles for nine lanes of a thousand pixels`);
  console.log(`a million operations: painted after ${paint.toFixed(0)} ms, a frame takes ` +
    `${middle.toFixed(1)} ms, the longest ${frames[frames.length - 1].toFixed(1)} ms`);
  await page.evaluate(`document.getElementById("fit").click()`);
  await page.frame();
  await page.evaluate(`document.getElementById("view").focus()`);
  await page.key("ArrowRight");
  await page.key("Enter");
  const view = await page.view();
  check(view.t1 - view.t0 < 1e6, "one of a million can be zoomed to");
});

console.log(browser.version);
await browser.close();
rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
