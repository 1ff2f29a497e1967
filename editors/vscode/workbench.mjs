// The extension in VS Code's workbench (workbench.sh): errors, meanings, fixes and a session of the debugger. It leaves pictures, for
// the book with PTXVM_WRITE_DOCS. SERVER is a code-server with the extension, and FOLDER the folder that it shows.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';

const { SERVER: server, FOLDER: folder, ROOT: root, PICTURES: pictures, PTXVM: command } = process.env;

// The folder: a kernel with an error, and one to debug.
const BROKEN = `.version 8.5
.target sm_90
.address_size 64

// out[i] = a * in[i], for a grid of one dimension.
.visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 a)
{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.f32 %f1, [a];
    mvo.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd1, %rd1, %rd3;
    ld.global.f32 %f2, [%rd1];
    mul.ftz.f32 %f3, %f1, %f2;
    add.u64 %rd2, %rd2, %rd3;
    st.global.f32 [%rd2], %f3;
    ret;
}
`;
const LAUNCH = {
  type: 'ptxvm', request: 'launch', name: 'diverge', program: '${workspaceFolder}/diverge.ptx',
  args: ['--block', '40', '--arg', 'u32[40]', '--arg', '12'],
};
const SETTINGS = {
  'ptxvm.path': command, 'workbench.startupEditor': 'none', 'telemetry.telemetryLevel': 'off', 'editor.minimap.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden', 'debug.toolBarLocation': 'docked', 'window.commandCenter': false,
};
mkdirSync(join(folder, '.vscode'), { recursive: true });
writeFileSync(join(folder, 'scale.ptx'), BROKEN);
copyFileSync(join(root, 'crates/command/tests/debug/diverge.ptx'), join(folder, 'diverge.ptx'));
writeFileSync(join(folder, '.vscode/launch.json'), JSON.stringify({ configurations: [LAUNCH] }));
writeFileSync(join(folder, '.vscode/settings.json'), JSON.stringify(SETTINGS));

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
  defaultViewport: { width: 1280, height: 760 },
});
const tab = await browser.newPage();

/** Waits until an element has these words. What VS Code puts between them, in which line, does not matter. */
const shows = (selector, words) => tab.waitForFunction((selector, words) =>
  [...document.querySelectorAll(selector)].some((node) => node.innerText.replaceAll(/\s/g, '').includes(words)),
{ timeout: 30_000 }, selector, words.replaceAll(/\s/g, '')).catch(async () => {
  await tab.screenshot({ path: join(pictures, 'failed.png') });
  throw new Error(`no ${selector} shows ${words}`);
});
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
/** Presses keys together: `press('Control', 'p')`. */
async function press(...keys) {
  for (const key of keys) await tab.keyboard.down(key);
  for (const key of keys.reverse()) await tab.keyboard.up(key);
}
/** Chooses the first entry of the palette for these words. */
async function palette(words, found) {
  await press('F1');
  await tab.waitForSelector('.quick-input-widget input');
  await tab.keyboard.type(words);
  await shows('.quick-input-list .monaco-list-row', found ?? words);
  await tab.keyboard.press('Enter');
}
/** Opens a file from the list of files, with the cursor at a place. */
async function open(file, line, column) {
  const name = await tab.waitForSelector(`.explorer-folders-view [aria-label^="${file}"]`);
  await name.click({ count: 2 });
  await shows('.tab.active', file);
  await press('Control', 'g');
  await tab.waitForSelector('.quick-input-widget input');
  await tab.keyboard.type(`${line}:${column}`);
  await shows('.quick-input-list', `${line}`);
  await tab.keyboard.press('Enter');
}
/** Leaves a picture, and one for the book. */
async function shoot(name) {
  await pause(800);
  await tab.screenshot({ path: join(pictures, `${name}.png`) });
  const path = join(root, `docs/vscode-${name}.webp`);
  if (process.env.PTXVM_WRITE_DOCS) await tab.screenshot({ path, type: 'webp', quality: 70 });
}

await tab.goto(`${server}/?folder=${folder}`);
await tab.waitForSelector('.monaco-workbench', { timeout: 60_000 });
await shows('.explorer-folders-view', 'scale.ptx');

// An error in the words of `ptxvm check`, and its fix.
await open('scale.ptx', 14, 6);
await tab.waitForSelector('.squiggly-error', { timeout: 30_000 });
await palette('Problems: Focus on Problems View', 'Focus on Problems');
await shows('.markers-panel', "Not a name of any known instruction: 'mvo'");
await shows('.markers-panel', 'Ln 14, Col 5');
await open('scale.ptx', 14, 6);
await press('Control', '.');
await shows('.action-widget', 'mov');
await shoot('fix');
await tab.keyboard.press('Enter');
await shows('.view-line', 'mov.u32 %r1, %tid.x;');
await tab.waitForFunction(() => !document.querySelector('.squiggly-error'), { timeout: 30_000 });

// What an instruction means.
await open('scale.ptx', 18, 6);
await palette('Show or Focus Hover');
await shows('.monaco-hover', 'PTX manual');
await shoot('hover');
await tab.keyboard.press('Escape');
console.log('errors, a fix and meanings');

// The debugger: a condition of a breakpoint, registers, the console, and back.
await open('diverge.ptx', 32, 5);
await palette('Debug: Add Conditional Breakpoint', 'Add Conditional Breakpoint');
await tab.waitForSelector('.breakpoint-widget .monaco-editor');
await pause(500);
await tab.keyboard.type('%tid.x == 9');
await tab.keyboard.press('Enter');
await tab.waitForSelector('.codicon-debug-breakpoint-conditional');
await tab.keyboard.press('F5');
await shows('.debug-call-stack', 'BREAKPOINT 1');
await shows('.debug-call-stack', 'k (lane 9)');
await shows('.debug-variables', '%r3 = 0');
await tab.click('.repl-input-wrapper .monaco-editor');
await tab.waitForSelector('.repl-input-wrapper .monaco-editor.focused');
for (const [typed, answer] of [['%r1 * 2', '18'], ['lanes', '0-11: diverge.ptx:32'], ['why', 'lanes went different ways']]) {
  await tab.keyboard.type(`${typed}\n`);
  await shows('.repl', answer);
}
await tab.keyboard.press('F10');
await shows('.debug-variables', '%r3 = 18');
await shoot('debugger');
await tab.click('.debug-toolbar .codicon-debug-step-back, .codicon-debug-step-back');
await shows('.debug-variables', '%r3 = 0');
await press('Shift', 'F5');
await tab.waitForFunction(() => !document.querySelector('.codicon-debug-step-back'), { timeout: 30_000 });
console.log('a session of the debugger');
await browser.close();
