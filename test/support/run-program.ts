import type { ProcessLifetime } from '../../process/process-lifetime.ts'
import { type Running, runProgram } from '../../process/run.ts'

/**
 * Program for the tests of runProgram. `argv[2]` selects its behaviour, `argv[3]` is the time for a stop in milliseconds. It
 * prints what happens to it; a line on its stdin releases what it waits for.
 */
const [, , behaviour = '', stopMs = '5000'] = process.argv
const print = (line: string): void => void process.stdout.write(`${line}\n`)
const never = new Promise<never>(() => undefined)
const released = new Promise<void>((resolve) => process.stdin.once('data', () => resolve()))

const stopping = async (end: Promise<unknown>): Promise<void> => {
  print('stopping')
  await end
  print('stopped')
}

const BEHAVIOURS: Readonly<Record<string, (lifetime: ProcessLifetime) => Promise<Running>>> = {
  stops: async () => ({ message: 'up\n', stop: () => stopping(Promise.resolve()) }),
  'stops when released': async () => ({ message: 'up\n', stop: () => stopping(released) }),
  'never stops': async () => ({ message: 'up\n', stop: () => stopping(never) }),
  'fails to stop': async () => ({ message: 'up\n', stop: () => stopping(Promise.reject(new Error('no way'))) }),
  'never starts': async () => {
    print('starting')
    return never
  },
  'starts when released': async ({ stopping: signal }) => {
    print('starting')
    signal.addEventListener('abort', () => print('asked'))
    await released
    return { message: 'up\n', stop: () => stopping(Promise.resolve()) }
  },
  'loses its store and never stops': async () => ({
    ended: Promise.reject(new Error('the store is lost')),
    stop: () => stopping(never),
  }),
}

await runProgram({
  parse: () => ({ ok: { logLevel: 'silent', logFormat: 'json' } }),
  stopMs: Number(stopMs),
  async start(_settings, _log, lifetime) {
    lifetime.onForcedEnd(async () => print('killed'))
    return (await BEHAVIOURS[behaviour]?.(lifetime)) ?? never
  },
})
