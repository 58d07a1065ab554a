import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../support/run-program.ts', import.meta.url))

interface Run extends AsyncDisposable {
  readonly process: ChildProcess
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>
  /** Resolves once the program has printed the line. */
  printed(line: string): Promise<void>
}

function run(...args: readonly string[]): Run {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: 'pipe' })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const ended = new Promise<Awaited<Run['ended']>>((resolve) => child.once('close', (code) => resolve({ code, ...output })))
  return {
    process: child,
    ended,
    printed: (line) => expect.poll(() => output.stdout.split('\n'), { interval: 10, timeout: 60_000 }).toContain(line),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

test('a program stops once when it receives a signal twice: npm start forwards the signal that the terminal has already sent', async () => {
  await using program = run('stops when released')
  await program.printed('up')
  program.process.kill('SIGINT')
  await program.printed('stopping')
  program.process.kill('SIGINT')
  program.process.stdin?.write('\n')
  expect(await program.ended).toEqual({ code: 0, stdout: 'up\nstopping\nstopped\n', stderr: '' })
})

test('a stop that exceeds its deadline is forced, and remaining processes are killed', async () => {
  await using program = run('never stops', '1000')
  await program.printed('up')
  program.process.kill('SIGTERM')
  const sentence = 'mooring: the stop did not finish within 1 s; the remaining processes were killed.\n'
  expect(await program.ended).toEqual({ code: 0, stdout: 'up\nstopping\nkilled\n', stderr: sentence })
})

test.each([
  { does: 'a stop', behaviour: 'never stops', first: 'up' },
  { does: 'a start', behaviour: 'never starts', first: 'starting' },
])('a second Ctrl-C during $does exits at once', async ({ behaviour, first }) => {
  await using program = run(behaviour, '600000')
  await program.printed(first)
  await expect
    .poll(() => program.process.kill('SIGINT') && program.process.exitCode === null, { interval: 50, timeout: 60_000 })
    .toBe(false)
  expect(await program.ended).toMatchObject({ code: 130, stdout: expect.stringMatching(/killed\n$/) as string })
})

test('a start that ignores the signal is forced to exit, and its processes are killed', async () => {
  await using program = run('never starts', '600')
  await program.printed('starting')
  program.process.kill('SIGINT')
  expect(await program.ended).toMatchObject({ code: 0, stdout: 'starting\nkilled\n' })
})

test('a start that completes after the signal is stopped, and prints no message', async () => {
  await using program = run('starts when released')
  await program.printed('starting')
  program.process.kill('SIGINT')
  await program.printed('asked')
  program.process.stdin?.write('\n')
  expect(await program.ended).toEqual({ code: 0, stdout: 'starting\nasked\nstopping\nstopped\n', stderr: '' })
})

test.each([
  { behaviour: 'fails to stop', signal: true, message: 'the stop failed: no way' },
  { behaviour: 'loses its store and never stops', signal: false, message: 'the store is lost' },
])(
  'a program that $behaviour exits with 1 and a sentence, and kills remaining processes',
  async ({ behaviour, signal, message }) => {
    await using program = run(behaviour, '1000')
    if (signal) {
      await program.printed('up')
      program.process.kill('SIGTERM')
    }
    expect(await program.ended).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/killed\n$/) as string,
      stderr: expect.stringContaining(`mooring: ${message}`) as string,
    })
  },
)
