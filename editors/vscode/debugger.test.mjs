// The adapter of `ptxvm debug --dap` against the client of VS Code's own adapter tests (`.ci/editor`). SERVER is the
// command, and ROOT the folder of the repository.
import assert from 'node:assert';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DebugClient } from '@vscode/debugadapter-testsupport';

const folder = join(process.env.ROOT, 'crates/command/tests/debug');
const program = join(folder, 'diverge.ptx');
const args = ['--block', '40', '--arg', 'u32[40]', '--arg', '12'];
// The client starts an adapter by one word.
const adapter = join(mkdtempSync(join(tmpdir(), 'ptxvm-')), 'adapter');
writeFileSync(adapter, `exec '${process.env.SERVER}' debug --dap\n`);
chmodSync(adapter, 0o755);

/** Runs `steps` with a client that has started an adapter. */
async function withClient(steps) {
  const client = new DebugClient('sh', adapter, 'ptxvm', undefined, true);
  await client.start();
  try {
    await steps(client);
  } finally {
    // It asks the adapter to disconnect; one that was asked before has gone, and answers no more.
    await client.stop();
  }
}

test('a breakpoint is hit, and the launch ends', () => withClient(async (client) => {
  await client.hitBreakpoint({ program, args }, { path: program, line: 32 });
  const { body } = await client.threadsRequest();
  assert.equal(body.threads.length, 2);
  const stack = await client.stackTraceRequest({ threadId: 1 });
  const frameId = stack.body.stackFrames[0].id;
  const value = await client.evaluateRequest({ expression: '%tid.x + 1', frameId, context: 'watch' });
  assert.equal(value.body.result, '1');
  await Promise.all([client.continueRequest({ threadId: 1 }), client.waitForEvent('terminated')]);
}));

test('steps go forward and backward', () => withClient(async (client) => {
  await Promise.all([
    client.configurationSequence(),
    client.launch({ program, args, stopOnEntry: true }),
    client.assertStoppedLocation('entry', { path: program, line: 21 }),
  ]);
  await Promise.all([
    client.nextRequest({ threadId: 1 }),
    client.assertStoppedLocation('step', { path: program, line: 22 }),
  ]);
  await Promise.all([
    client.stepBackRequest({ threadId: 1 }),
    client.assertStoppedLocation('step', { path: program, line: 21 }),
  ]);
}));

test('what the kernel prints is output, and a fault an exception', () => withClient(async (client) => {
  const fault = { program: join(folder, 'fault.ptx'), args: ['--block', '40', '--arg', 'u32[33]'] };
  await Promise.all([
    client.configurationSequence(),
    client.launch(fault),
    client.assertOutput('stderr', 'error[out-of-bounds]'),
    client.assertStoppedLocation('exception', { path: fault.program, line: 13 }),
  ]);
}));
