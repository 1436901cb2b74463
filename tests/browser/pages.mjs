// node pages.mjs FOLDER PAGE...: opens pages of searches, comparisons and sweeps from their files in headless Chromium, in light
// and dark, on a screen and on a phone: nothing is wider than the screen, no request leaves the file, nothing is said on the
// console, links lead to their sections, and axe-core finds nothing that keeps people out.
// Prints "ok NAME" or "not ok NAME: why"; puts screenshots in FOLDER. $CHROMIUM is the browser.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const VIEWS = [
  ['screen', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
  ['screen-dark', { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }],
  ['phone-dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }]
];

const axe = fs.readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const [folder, ...pages] = process.argv.slice(2);
let failed = false;

function judge (name, why) {
  failed ||= Boolean(why);
  console.log(why ? `not ok ${name}: ${why}` : `ok ${name}`);
}

async function look (browser, file, options, picture) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const heard = [];
  page.on('console', (message) => heard.push(message.text()));
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
  page.on('request', (request) => { if (!request.url().startsWith('file:')) heard.push(`asks for ${request.url()}`); });
  await page.goto(pathToFileURL(path.resolve(file)).href);
  await page.screenshot({ path: picture, fullPage: true });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  const lost = await page.evaluate(() => [...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href'))
    .filter((href) => !document.querySelector(href)));
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run());
  const grave = found.violations.map((v) => `${v.id} (${v.impact}): ${v.nodes[0].html.slice(0, 120)}`);
  await context.close();
  return [...heard, ...(wide > 0 ? [`${wide} px wider than the screen`] : []), ...lost.map((href) => `${href} leads nowhere`), ...grave];
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync']
});
for (const file of pages) {
  for (const [view, options] of VIEWS) {
    const why = await look(browser, file, options, path.join(folder, `${file}-${view}.png`));
    judge(`browser/${file}/${view}`, why.join('; '));
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
