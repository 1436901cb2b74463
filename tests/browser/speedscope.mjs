// node speedscope.mjs FOLDER TRACE...: opens each Chrome trace in speedscope, in headless Chromium, and looks for its
// lanes and slices on the page. Everything comes from this machine: a request to any other host is a failure.
// Prints "ok NAME" or "not ok NAME: why"; puts screenshots in FOLDER. $CHROMIUM is the browser.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import zlib from 'node:zlib';
import { chromium } from 'playwright-core';

const PATIENCE_MS = 120000; // machines that build on all cores are slow
const MAX_LANES = 8; // looked at slice by slice; all are looked for in the list
const VIEW = { width: 1280, height: 800 };

const viewer = path.resolve('node_modules/speedscope/dist/release');
const types = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};
const [folder, ...traces] = process.argv.slice(2);
let failed = false;

function judge (name, why) {
  failed ||= Boolean(why);
  console.log(why ? `not ok ${name}: ${why}` : `ok ${name}`);
}

// The viewer's own files, and the trace under /trace/NAME.
function serve (request, response) {
  const name = decodeURIComponent(new URL(request.url, 'http://127.0.0.1').pathname);
  const trace = traces.find((file) => name === `/trace/${path.basename(file)}`);
  const file = trace ?? path.join(viewer, path.normalize(name));
  fs.readFile(file, (error, data) => {
    if (error || !(trace || file.startsWith(viewer))) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': types[path.extname(file)] ?? 'application/octet-stream' });
    response.end(data);
  });
}

// What the page must show: per lane its title, the time in its slices, and its slices as speedscope names them.
function readLanes (file) {
  const data = fs.readFileSync(file);
  const text = data[0] === 0x1f && data[1] === 0x8b ? zlib.gunzipSync(data) : data;
  const lanes = new Map();
  const names = new Map();
  for (const event of JSON.parse(text.toString()).traceEvents) {
    if (event.ph === 'M') {
      names.set(`${event.name} ${event.name.startsWith('process') ? event.pid : event.tid}`, event.args.name);
    }
    if (event.ph !== 'X') {
      continue;
    }
    if (!lanes.has(event.tid)) {
      const rank = names.get(`process_name ${event.pid}`);
      const stream = names.get(`thread_name ${event.tid}`);
      lanes.set(event.tid, {
        title: `${rank} (pid ${event.pid}), ${stream} (tid ${event.tid})`,
        total_us: 0,
        slices: new Map(),
      });
    }
    const lane = lanes.get(event.tid);
    const name = Object.keys(event.args).length ? `${event.name} ${JSON.stringify(event.args)}` : event.name;
    lane.total_us += event.dur;
    lane.slices.set(name, (lane.slices.get(name) ?? 0) + event.dur);
  }
  return [...lanes.entries()].sort((a, b) => a[0] - b[0]).map(([, lane]) => lane);
}

// "899.96µs", "1.50ms", "12.30s", "1:02.33" in microseconds.
function readTime (text) {
  const units = { ns: 1e-3, 'µs': 1, ms: 1e3, s: 1e6 };
  const [, minutes, number, unit] = text.match(/^(?:(\d+):)?([\d.]+)(ns|µs|ms|s)?$/);
  return (Number(minutes ?? 0) * 60 + Number(number)) * (units[unit] ?? (minutes ? 1e6 : NaN));
}

async function open (browser, origin, file) {
  const page = await browser.newPage({ viewport: VIEW });
  const heard = { messages: [], strangers: [] };
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('console', (message) => heard.messages.push(message.text()));
  page.on('pageerror', (error) => heard.messages.push(`error: ${error.message}`));
  await page.route('**', (route) => {
    const url = route.request().url();
    if (url.startsWith(origin) || url.startsWith('data:') || url.startsWith('blob:')) {
      return route.continue();
    }
    heard.strangers.push(url);
    return route.abort();
  });
  const url = encodeURIComponent(`${origin}/trace/${path.basename(file)}`);
  await page.goto(`${origin}/index.html#profileURL=${url}`);
  return { page, heard };
}

async function waitForText (page, text) {
  await page.waitForFunction((wanted) => document.body.innerText.includes(wanted), text);
}

// Every lane is in the list of profiles, in the order of ranks and streams, with the time of its slices.
async function checkList (page, lanes) {
  await page.keyboard.press('t');
  await waitForText(page, 'Total Weight');
  const lines = (await page.evaluate(() => document.body.innerText)).split('\n').map((line) => line.split('\t'));
  const rows = lines.filter((cells) => /^\d+$/.test(cells[0]) && cells.length >= 2);
  const times = lines.flat();
  await page.keyboard.press('Escape');
  const shown = rows.map((cells) => cells[1]);
  const wanted = lanes.map((lane) => lane.title);
  // The list draws what fits on the screen
  if (shown.length < Math.min(wanted.length, 12)) {
    return `${shown.length} of ${wanted.length} lanes are in the list`;
  }
  const at = shown.findIndex((title, i) => title !== wanted[i]);
  if (at >= 0) {
    return `lane ${at + 1} in the list is ${shown[at]}, not ${wanted[at]}`;
  }
  for (let i = 0; i < rows.length; i++) {
    const time = rows[i][2] ?? times[times.indexOf(shown[i]) + 1];
    if (!(Math.abs(readTime(time) - lanes[i].total_us) <= 0.01 + 0.01 * lanes[i].total_us)) {
      return `${shown[i]} lasts ${time}, not ${lanes[i].total_us} µs`;
    }
  }
  return null;
}

// The table of the lane lists its slices, the longest first.
async function checkTable (page, lane, index, n_lanes) {
  const title = n_lanes > 1 ? `${lane.title} (${index + 1}/${n_lanes})` : lane.title;
  try {
    await waitForText(page, title);
  } catch {
    return 'its title is not on the page';
  }
  const lines = (await page.evaluate(() => document.body.innerText)).split('\n').map((line) => line.trim());
  const found = lines.filter((line) => lane.slices.has(line));
  const longest_us = Math.max(...lane.slices.values());
  // The table draws what fits on the screen
  if (found.length < Math.min(lane.slices.size, 20)) {
    return `${found.length} of ${lane.slices.size} slices are in the table`;
  }
  const first_us = lane.slices.get(found[0]);
  return first_us > longest_us - 0.01 ? null : `${found[0]} is first with ${first_us} µs, the longest has ${longest_us}`;
}

// Somewhere on the drawn lane the mouse finds a slice: its name stands in the tip.
async function checkHover (page, lane) {
  const names = [...lane.slices.keys()].map((name) => name.split(' {')[0]);
  await page.keyboard.press('1');
  for (let x = 5; x < VIEW.width; x += 7) {
    await page.mouse.move(x, 150);
    await page.waitForTimeout(30);
    const text = await page.evaluate(() => document.body.innerText);
    if (names.some((name) => text.includes(name))) {
      return null;
    }
  }
  return 'no slice is under the mouse';
}

// The canvas is drawn: a screenshot has many colours besides the grid's.
async function checkPicture (page, file) {
  const picture = await page.screenshot({ path: file });
  const n_colours = await page.evaluate(async (source) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 20, image.width, image.height - 20).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4) {
      if (Math.max(pixels[i], pixels[i + 1], pixels[i + 2]) - Math.min(pixels[i], pixels[i + 1], pixels[i + 2]) > 10) {
        colours.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
      }
    }
    return colours.size;
  }, `data:image/png;base64,${picture.toString('base64')}`);
  return n_colours >= 3 ? null : `only ${n_colours} colours in ${file}`;
}

async function checkTrace (browser, origin, file) {
  const name = path.basename(file);
  const lanes = readLanes(file);
  const { page, heard } = await open(browser, origin, file);
  try {
    await waitForText(page, lanes[0].title);
    judge(`${name}/opens`);
  } catch {
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
    judge(`${name}/opens`, `${lanes[0].title} is not on the page: ${heard.messages.join(' | ').slice(0, 500)}`);
    return;
  }
  judge(`${name}/slice under the mouse`, await checkHover(page, lanes[0]));
  judge(`${name}/slices are drawn`, await checkPicture(page, path.join(folder, `${name}.png`)));
  judge(`${name}/lanes in order`, await checkList(page, lanes));
  await page.keyboard.press('3');
  for (let i = 0; i < Math.min(lanes.length, MAX_LANES); i++) {
    judge(`${name}/slices of ${lanes[i].title}`, await checkTable(page, lanes[i], i, lanes.length));
    await page.screenshot({ path: path.join(folder, `${name}-${i + 1}.png`) });
    await page.keyboard.press('n');
  }
  // speedscope tells on its console of slices that overlap or never end
  const complaint = heard.messages.find((text) => /Tried to|still open|stack was empty|rror/.test(text));
  judge(`${name}/no complaint of the viewer`, complaint);
  judge(`${name}/no other host`, heard.strangers[0]);
  await page.close();
}

const server = http.createServer(serve);
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
// Each launch has a new user data folder, removed at the end
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  headless: true,
  timeout: PATIENCE_MS,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
try {
  for (const file of traces) {
    await checkTrace(browser, `http://127.0.0.1:${server.address().port}`, file);
  }
} catch (error) {
  judge('speedscope', error.message.split('\n')[0]);
} finally {
  await browser.close();
  server.close();
}
process.exitCode = failed || traces.length === 0 ? 1 : 0;
