import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Output } from '../channels/output.ts'
import { DEFAULT_SSH_LIMITS } from './limits.ts'
import { LineWatch } from './line-watch.ts'
import type { Wire } from './wire/wire.ts'

const { keepaliveMs, keepaliveMisses, probeMs } = DEFAULT_SSH_LIMITS
const KEY_EXCHANGE_MS = 30_000
const TICK_MS = 500

/** Connection of a quiet client, checked from time 0 on. */
function watched({ exchanging = false } = {}) {
  let pings = 0
  const wire = { exchanging, ping: () => (pings += 1), rekey: () => undefined } as unknown as Wire
  const line = new LineWatch({ wire, output: new Output(new Socket()), limits: DEFAULT_SSH_LIMITS, now: 0 })
  return {
    line,
    pings: () => pings,
    tick: (now: number, stalledMs = 0) => line.tick(now, stalledMs),
  }
}

test('a connection that does not answer a probe in time is replaced', () => {
  const { line, tick } = watched()
  line.probe(0)
  expect([tick(probeMs), tick(probeMs + 1)]).toEqual(['fine', 'replaced'])
})

test('a quiet connection gets keepalives, and is silent after the maximum number of misses', () => {
  const { tick, pings } = watched()
  const states = []
  for (let now = TICK_MS; states.at(-1) !== 'silent'; now += TICK_MS) states.push(tick(now))
  expect([states.length, pings()]).toEqual([(keepaliveMs * (keepaliveMisses + 1)) / TICK_MS + 1, keepaliveMisses])
})

test('time in which this process did not run does not count', () => {
  const [probed, asked, exchanging] = [watched(), watched(), watched({ exchanging: true })]
  probed.line.probe(0)
  for (let misses = 1; misses <= keepaliveMisses; misses += 1) asked.tick(keepaliveMs * misses + 1)
  exchanging.tick(0)
  const [from, stalledMs] = [keepaliveMs * keepaliveMisses + 1, 60_000]
  expect(probed.tick(TICK_MS + stalledMs, stalledMs)).toBe('fine')
  expect(asked.tick(from + TICK_MS + stalledMs, stalledMs)).toBe('fine')
  expect(exchanging.tick(TICK_MS + stalledMs, stalledMs)).toBe('fine')
  expect(probed.tick(stalledMs + probeMs + 1)).toBe('replaced')
  expect(asked.tick(stalledMs + from + keepaliveMs)).toBe('silent')
  expect(exchanging.tick(stalledMs + KEY_EXCHANGE_MS + 1)).toBe('stuck')
})
