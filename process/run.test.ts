import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../test/support/process/run-program.ts', import.meta.url))

interface Run extends AsyncDisposable {
  readonly process: ChildProcess
  readonly ended: Promise<{ readonly code: number | null; readonly said: string; readonly complained: string }>
  /** Resolves once the program has printed the line. */
  said(word: string): Promise<void>
}

function run(...args: readonly string[]): Run {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: 'pipe' })
  const output = { said: '', complained: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.complained += chunk.toString()))
  const ended = new Promise<Awaited<Run['ended']>>((resolve) => child.once('close', (code) => resolve({ code, ...output })))
  return {
    process: child,
    ended,
    said: (word) => expect.poll(() => output.said.split('\n'), { interval: 10, timeout: 10_000 }).toContain(word),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

test('a program stops once when it receives a signal twice: npm start forwards the signal that the terminal has already sent', async () => {
  await using program = run('stops when told')
  await program.said('up')
  program.process.kill('SIGINT')
  await program.said('stopping')
  program.process.kill('SIGINT')
  program.process.stdin?.write('\n')
  expect(await program.ended).toEqual({ code: 0, said: 'up\nstopping\nstopped\n', complained: '' })
})

test('a stop that exceeds its deadline is forced, and remaining processes are killed', async () => {
  await using program = run('never stops', '1000')
  await program.said('up')
  program.process.kill('SIGTERM')
  const sentence = 'mooring: the stop did not finish within 1 s; the remaining processes were killed.\n'
  expect(await program.ended).toEqual({ code: 0, said: 'up\nstopping\nkilled\n', complained: sentence })
})

test.each([
  { does: 'a stop', behaviour: 'never stops', first: 'up' },
  { does: 'a start', behaviour: 'never starts', first: 'starting' },
])('a second Ctrl-C during $does exits at once', async ({ behaviour, first }) => {
  await using program = run(behaviour, '600000')
  await program.said(first)
  await expect
    .poll(() => program.process.kill('SIGINT') && program.process.exitCode === null, { interval: 50, timeout: 10_000 })
    .toBe(false)
  expect(await program.ended).toMatchObject({ code: 130, said: expect.stringMatching(/killed\n$/) as string })
})

test('a start that ignores the signal is forced to exit, and its processes are killed', async () => {
  await using program = run('never starts', '600')
  await program.said('starting')
  program.process.kill('SIGINT')
  expect(await program.ended).toMatchObject({ code: 0, said: 'starting\nkilled\n' })
})

test('a start that completes after the signal is stopped, and prints no message', async () => {
  await using program = run('starts when told')
  await program.said('starting')
  program.process.kill('SIGINT')
  await program.said('asked')
  program.process.stdin?.write('\n')
  expect(await program.ended).toEqual({ code: 0, said: 'starting\nasked\nstopping\nstopped\n', complained: '' })
})

test.each([
  { behaviour: 'fails to stop', signal: true, says: 'the stop failed: no way' },
  { behaviour: 'loses its store and never stops', signal: false, says: 'the store is lost' },
])(
  'a program that $behaviour exits with 1 and a sentence, and kills remaining processes',
  async ({ behaviour, signal, says }) => {
    await using program = run(behaviour, '1000')
    if (signal) {
      await program.said('up')
      program.process.kill('SIGTERM')
    }
    expect(await program.ended).toMatchObject({
      code: 1,
      said: expect.stringMatching(/killed\n$/) as string,
      complained: expect.stringContaining(`mooring: ${says}`) as string,
    })
  },
)
