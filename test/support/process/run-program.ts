import type { Life } from '../../../process/life.ts'
import { type Running, runProgram } from '../../../process/run.ts'

/**
 * Program for the tests of runProgram. `argv[2]` selects its behaviour, `argv[3]` is the time for a stop in milliseconds. It
 * prints what happens to it; a line on its stdin releases what it waits for.
 */
const [, , behaviour = '', stopMs = '5000'] = process.argv
const say = (word: string): void => void process.stdout.write(`${word}\n`)
const never = new Promise<never>(() => undefined)
const told = new Promise<void>((resolve) => process.stdin.once('data', () => resolve()))

const stopping = async (end: Promise<unknown>): Promise<void> => {
  say('stopping')
  await end
  say('stopped')
}

const BEHAVIOURS: Readonly<Record<string, (life: Life) => Promise<Running>>> = {
  stops: async () => ({ message: 'up\n', stop: () => stopping(Promise.resolve()) }),
  'stops when told': async () => ({ message: 'up\n', stop: () => stopping(told) }),
  'never stops': async () => ({ message: 'up\n', stop: () => stopping(never) }),
  'fails to stop': async () => ({ message: 'up\n', stop: () => stopping(Promise.reject(new Error('no way'))) }),
  'never starts': async () => {
    say('starting')
    return never
  },
  'starts when told': async ({ stopping: signal }) => {
    say('starting')
    signal.addEventListener('abort', () => say('asked'))
    await told
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
  async start(_settings, _log, life) {
    life.onForcedEnd(async () => say('killed'))
    return (await BEHAVIOURS[behaviour]?.(life)) ?? never
  },
})
