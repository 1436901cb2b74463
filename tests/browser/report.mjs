// node report.mjs FOLDER PAGE...: opens each report from its file in headless Chromium, as a reader does: reads, zooms,
// clicks a slice and reads its arguments, with the mouse, with keys and with fingers, in light and dark, on a screen and
// on a phone; axe-core looks for what keeps people out. No request may leave the file.
// Prints "ok NAME" or "not ok NAME: why"; puts screenshots in FOLDER. $CHROMIUM is the browser.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const PATIENCE_MS = 120000; // machines that build on all cores are slow
const SCREEN = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const SECTIONS = ['Summary', 'Warnings', 'Where the time goes', 'What gains most', 'Timeline', 'Critical path', 'Memory',
  'Collectives', 'Kernels', 'Assumptions'];

const axe = fs.readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const [folder, ...pages] = process.argv.slice(2);
let failed = false;

function judge (name, why) {
  failed ||= Boolean(why);
  console.log(why ? `not ok ${name}: ${why}` : `ok ${name}`);
}

async function open (browser, file, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const heard = { messages: [], requests: [] };
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('console', (message) => heard.messages.push(message.text()));
  page.on('pageerror', (error) => heard.messages.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => { heard.messages.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => heard.requests.push(request.url()));
  await page.goto(pathToFileURL(path.resolve(file)).href);
  return { context, page, heard };
}

// What the page draws, read from its own data: the slices of each lane as [op, start, end, microbatch].
async function readData (page) {
  const data = JSON.parse(await page.locator('#timeline-data').textContent());
  for (const lane of data.lanes) {
    let at = 0;
    lane.list = [];
    for (let i = 0; i < lane.slices.length; i += 5) {
      const start = at + lane.slices[i + 1];
      at = start + lane.slices[i + 2];
      lane.list.push({ op: data.ops[lane.slices[i]], start, end: at, microbatch: lane.slices[i + 4] });
    }
  }
  return data;
}

async function range (page) {
  await page.waitForTimeout(100); // a frame
  return page.evaluate(() => {
    const view = document.getElementById('timeline-view');
    return { from: Number(view.dataset.from), to: Number(view.dataset.to) };
  });
}

const near = (a, b, slack) => Math.abs(a - b) <= slack;

// Where the middle of what is in view of a slice is on the screen; the canvas tells no one, so it is computed anew.
async function placeOf (page, data, lane, slice) {
  const view = await range(page);
  const box = await page.locator('#timeline-canvas').boundingBox();
  const gutter = box.width < 600 ? 74 : 132;
  let y = 0;
  for (let i = 0; i <= data.lanes.indexOf(lane); i++) {
    if (i === 0 || data.lanes[i - 1].rank !== data.lanes[i].rank) y += 22;
    y += i < data.lanes.indexOf(lane) ? 24 : 10;
  }
  const middle = (Math.max(slice.start * data.unit_s, view.from) + Math.min(slice.end * data.unit_s, view.to)) / 2;
  return { x: box.x + gutter + (middle - view.from) / (view.to - view.from) * (box.width - gutter), y: box.y + y };
}

function longest (lane) {
  return lane.list.reduce((best, slice) => (slice.end - slice.start > best.end - best.start ? slice : best));
}

// The panel names the slice and its arguments.
async function checkPanel (page, data, lane, slice) {
  const text = await page.locator('#slice').innerText();
  const wanted = [slice.op.name, lane.stream, slice.op.category, data.ranks[lane.rank]];
  if (slice.op.layer >= 0) wanted.push(`layer\n${slice.op.layer}`);
  if (slice.microbatch >= 0) wanted.push(`microbatch\n${slice.microbatch}`);
  if (slice.op.detail) wanted.push(slice.op.detail);
  const absent = wanted.find((part) => !text.includes(part));
  return absent === undefined ? null : `no "${absent}" in: ${text.replaceAll('\n', ' | ')}`;
}

async function checkZoom (page, data) {
  const end = data.end * data.unit_s;
  const whole = await range(page);
  if (!near(whole.from, 0, end * 1e-9) || !near(whole.to, end, end * 1e-9)) return `shows ${whole.from} to ${whole.to} of ${end}`;
  await page.getByRole('button', { name: 'zoom in' }).click();
  const half = await range(page);
  if (!near(half.to - half.from, end / 2, end * 1e-6)) return `zoomed in it shows ${half.to - half.from} of ${end}`;
  await page.getByRole('button', { name: 'earlier' }).click();
  const earlier = await range(page);
  if (!near(earlier.from, half.from - end / 8, end * 1e-6)) return `moved from ${half.from} to ${earlier.from}`;
  const box = await page.locator('#timeline-canvas').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 30);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  const wheel = await range(page);
  if (!(wheel.to - wheel.from < (half.to - half.from) * 0.7)) return 'Ctrl and the wheel do not zoom';
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 100, box.y + 30, { steps: 4 });
  await page.mouse.up();
  const dragged = await range(page);
  if (!(dragged.from > wheel.from)) return 'dragging does not move';
  await page.getByRole('button', { name: 'whole step' }).click();
  const again = await range(page);
  return near(again.to - again.from, end, end * 1e-9) ? null : 'the whole step does not come back';
}

async function checkClick (page, data) {
  const lane = data.lanes[0];
  const slice = longest(lane);
  const start = slice.start * data.unit_s;
  const length = (slice.end - slice.start) * data.unit_s;
  // Zoom until it is 20 px wide
  for (let i = 0; i < 40; i++) {
    const view = await range(page);
    if (length / (view.to - view.from) > 0.02) break;
    const place = await placeOf(page, data, lane, slice);
    await page.mouse.move(place.x, place.y);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -400);
    await page.keyboard.up('Control');
  }
  const place = await placeOf(page, data, lane, slice);
  await page.mouse.click(place.x, place.y);
  const why = await checkPanel(page, data, lane, slice);
  if (why) return why;
  const text = await page.locator('#slice').innerText();
  const [, number, unit] = text.match(/starts at\n([\d.e+-]+) (s|ms|µs|ns|ps)/) ?? [];
  const shown = Number(number) * { s: 1, ms: 1e-3, 'µs': 1e-6, ns: 1e-9, ps: 1e-12 }[unit];
  return near(shown, start, 1e-8 * (1 + start) + start * 1e-8) ? null : `starts at ${number} ${unit}, not ${start} s`;
}

async function checkKeys (page, data) {
  await page.reload();
  const view = page.locator('#timeline-view');
  await page.locator('#timeline-find').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  if (!(await view.evaluate((element) => element === document.activeElement))) return 'Tab does not lead to the timeline';
  await page.keyboard.press('n');
  const lane = data.lanes[0];
  const first = await checkPanel(page, data, lane, lane.list[0]);
  if (first) return first;
  await page.keyboard.press('n');
  await page.keyboard.press('Enter');
  const at = await range(page);
  const slice = lane.list[1];
  if (!(at.from <= slice.start * data.unit_s && slice.end * data.unit_s <= at.to && at.to - at.from < data.end * data.unit_s / 2)) {
    return `Enter shows ${at.from} to ${at.to}, the slice is at ${slice.start * data.unit_s}`;
  }
  await page.keyboard.press('ArrowDown');
  if (!(await page.locator('#slice').innerText()).includes(data.lanes[1].stream)) return 'ArrowDown does not change the lane';
  await page.keyboard.press('0');
  const whole = await range(page);
  if (!near(whole.to - whole.from, data.end * data.unit_s, 1e-9)) return '0 does not show the whole step';
  await page.keyboard.press('Tab');
  return (await view.evaluate((element) => element !== document.activeElement)) ? null : 'Tab does not leave the timeline';
}

async function checkFind (page) {
  await page.locator('#timeline-find').fill('attention');
  await page.keyboard.press('Enter');
  await page.waitForTimeout(100);
  const text = await page.locator('#slice h3').innerText();
  return text.includes('attention') ? null : `finds ${text}`;
}

// The canvas is drawn: slices have colours.
async function checkPicture (page) {
  const n = await page.evaluate(() => {
    const canvas = document.getElementById('timeline-canvas');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4) {
      if (Math.max(pixels[i], pixels[i + 1], pixels[i + 2]) - Math.min(pixels[i], pixels[i + 1], pixels[i + 2]) > 40) {
        colours.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
      }
    }
    return colours.size;
  });
  return n >= 3 ? null : `only ${n} colours`;
}

// Nothing wider than the page, nothing that axe-core calls serious.
async function checkLook (page) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (over > 0) return `${over} px wider than the window`;
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => ({ id: v.id, impact: v.impact, html: v.nodes[0].html })));
  const bad = found.find((violation) => ['serious', 'critical'].includes(violation.impact));
  return bad ? `axe-core: ${bad.impact}: ${bad.id}: ${bad.html.slice(0, 200)}` : null;
}

async function checkPhone (browser, file, name) {
  const { context, page } = await open(browser, file, { viewport: PHONE, hasTouch: true, isMobile: true });
  const data = await readData(page);
  const lane = data.lanes[0];
  await page.getByRole('button', { name: 'next slice' }).tap();
  judge(`${name}/phone, a button`, await checkPanel(page, data, lane, lane.list[0]));
  await page.getByRole('button', { name: 'zoom to slice' }).tap();
  // Of another lane the slice that fills most of what is in view
  const view = await range(page);
  const seen = (slice) => Math.min(slice.end * data.unit_s, view.to) - Math.max(slice.start * data.unit_s, view.from);
  const slice = data.lanes[1].list.reduce((best, other) => (seen(other) > seen(best) ? other : best));
  const place = await placeOf(page, data, data.lanes[1], slice);
  await page.touchscreen.tap(place.x, place.y);
  judge(`${name}/phone, a tap on a slice`, await checkPanel(page, data, data.lanes[1], slice));
  await context.close();
}

async function checkReport (browser, file) {
  const name = path.basename(file);
  const { context, page, heard } = await open(browser, file, { viewport: SCREEN });
  const headings = await page.locator('h2').allInnerTexts();
  judge(`${name}/sections`, headings.join() === SECTIONS.join() ? null : headings.join());
  const data = await readData(page);
  judge(`${name}/timeline is drawn`, await checkPicture(page));
  judge(`${name}/zoom and move`, await checkZoom(page, data));
  judge(`${name}/a click on a slice`, await checkClick(page, data));
  await page.screenshot({ path: path.join(folder, `${name}-slice.png`) });
  judge(`${name}/keys`, await checkKeys(page, data));
  judge(`${name}/find`, await checkFind(page));
  judge(`${name}/no complaint`, heard.messages[0]);
  judge(`${name}/no request but the page`, heard.requests.find((url) => !url.startsWith('file:') || !url.endsWith('.html')));
  await context.close();
  for (const viewport of [SCREEN, PHONE]) {
    for (const colorScheme of ['light', 'dark']) {
      const look = await open(browser, file, { viewport, colorScheme });
      judge(`${name}/${viewport.width} px, ${colorScheme}`, await checkLook(look.page));
      await look.page.screenshot({ path: path.join(folder, `${name}-${viewport.width}-${colorScheme}.png`), fullPage: true });
      await look.context.close();
    }
  }
  await checkPhone(browser, file, name);
  const plain = await open(browser, file, { viewport: SCREEN, javaScriptEnabled: false });
  const text = await plain.page.locator('main').innerText();
  judge(`${name}/without scripts`, ['Where the time goes', 'exposed tp', 'drawn by a script'].every((part) => text.includes(part)) ? null : text.slice(0, 300));
  await plain.context.close();
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  headless: true,
  timeout: PATIENCE_MS,
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  for (const file of pages) {
    await checkReport(browser, file);
  }
} catch (error) {
  judge('report', error.message.split('\n')[0]);
} finally {
  await browser.close();
}
process.exitCode = failed || pages.length === 0 ? 1 : 0;
