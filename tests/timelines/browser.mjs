// A headless Chromium, driven over a pipe in the DevTools protocol: no package and no port is needed.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

// The path of a browser: that of MILLRACE_BROWSER, or one of PATH; null: there is none.
export function findBrowser() {
  if (process.env.MILLRACE_BROWSER) return process.env.MILLRACE_BROWSER;
  for (const folder of (process.env.PATH || "").split(":"))
    for (const name of NAMES) if (existsSync(join(folder, name))) return join(folder, name);
  return null;
}

export async function openBrowser(path) {
  const profile = mkdtempSync(join(tmpdir(), "millrace-browser-"));
  const child = spawn(path, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--hide-scrollbars", "--user-data-dir=" + profile, "--remote-debugging-pipe"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [, , , toBrowser, fromBrowser] = child.stdio;
  const waiting = new Map(), listeners = [];
  let number = 0, parts = [];

  function receive(text) {
    const message = JSON.parse(text);
    if (message.id === undefined) for (const listen of listeners) listen(message);
    else {
      const { resolve, reject, method } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(method + ": " + message.error.message));
      else resolve(message.result);
    }
  }
  fromBrowser.on("data", (data) => {
    let from = 0;
    for (let end; (end = data.indexOf(0, from)) >= 0; from = end + 1) {
      parts.push(data.subarray(from, end));
      receive(Buffer.concat(parts).toString());
      parts = [];
    }
    parts.push(data.subarray(from));
  });
  child.on("exit", () => {
    for (const { reject } of waiting.values()) reject(new Error("the browser has ended"));
  });
  toBrowser.on("error", () => {});

  function send(method, params = {}, sessionId) {
    return new Promise((resolve, reject) => {
      waiting.set(++number, { resolve, reject, method });
      toBrowser.write(JSON.stringify({ id: number, method, params, sessionId }) + "\0");
    });
  }
  async function close() {
    await send("Browser.close").catch(() => {});
    if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.on("exit", resolve));
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
  return { send, close, listen: (f) => listeners.push(f), version: (await send("Browser.getVersion")).product };
}

const KEY_CODES = { ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Enter: 13, Escape: 27, Tab: 9, Home: 36, End: 35,
  PageUp: 33, PageDown: 34 };

// One tab of `width` by `height`. `complaints` collects what the page logs, throws, or asks of a network.
export async function openTab(browser, { width, height, dark = false }) {
  const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  const send = (method, params) => browser.send(method, params, sessionId);
  const complaints = [];
  let loaded = null;
  browser.listen((message) => {
    if (message.sessionId !== sessionId) return;
    const { method, params } = message;
    if (method === "Page.loadEventFired" && loaded) loaded();
    if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled") complaints.push(params.args.map((a) => a.value ?? a.description).join(" "));
    if (method === "Log.entryAdded") complaints.push(params.entry.text);
    if (method === "Network.requestWillBeSent" && !/^(file|data):/.test(params.request.url)) complaints.push("asks for " + params.request.url);
  });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(domain + ".enable");
  await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });

  async function evaluate(expression) {
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }
  async function go(url) {
    const done = new Promise((resolve) => { loaded = resolve; });
    await send("Page.navigate", { url });
    await done;
    await frame();
  }
  // After the next frame has been drawn.
  const frame = () => evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
  async function mouse(type, x, y, more = {}) {
    await send("Input.dispatchMouseEvent", { type, x, y, button: "none", ...more });
  }
  async function click(x, y) {
    await mouse("mouseMoved", x, y);
    await mouse("mousePressed", x, y, { button: "left", buttons: 1, clickCount: 1 });
    await mouse("mouseReleased", x, y, { button: "left", clickCount: 1 });
    await frame();
  }
  async function drag(x0, y0, x1, y1) {
    await mouse("mousePressed", x0, y0, { button: "left", buttons: 1, clickCount: 1 });
    for (let i = 1; i <= 5; i++) await mouse("mouseMoved", x0 + (x1 - x0) * i / 5, y0 + (y1 - y0) * i / 5, { button: "left", buttons: 1 });
    await mouse("mouseReleased", x1, y1, { button: "left", clickCount: 1 });
    await frame();
  }
  async function wheel(x, y, deltaY) {
    await mouse("mouseWheel", x, y, { deltaX: 0, deltaY });
    await frame();
  }
  async function key(name) {
    const code = KEY_CODES[name] || name.toUpperCase().charCodeAt(0);
    const text = name.length === 1 ? { text: name } : name === "Enter" ? { text: "\r" } : {};
    await send("Input.dispatchKeyEvent", { type: "keyDown", key: name, windowsVirtualKeyCode: code, ...text });
    await send("Input.dispatchKeyEvent", { type: "keyUp", key: name, windowsVirtualKeyCode: code });
    await frame();
  }
  const screenshot = async () => Buffer.from((await send("Page.captureScreenshot", { format: "png" })).data, "base64");
  const pdf = async () => Buffer.from((await send("Page.printToPDF", { printBackground: true })).data, "base64");
  const close = () => browser.send("Target.closeTarget", { targetId });
  return { send, go, evaluate, frame, mouse, click, drag, wheel, key, screenshot, pdf, complaints, close };
}
