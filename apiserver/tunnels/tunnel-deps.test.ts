import { expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { JournalReader } from '../../journal/port.ts'
import { createPresenceLookup } from './tunnel-deps.ts'

const tunnel = {
  metadata: { uid: 'u' },
  status: { sessions: 2, lastConnectedAt: '2030-01-31T12:00:00.000Z' },
} as unknown as Tunnel
const fails =
  (error: Error): JournalReader['presence'] =>
  () =>
    Promise.reject(error)
const inStatus = { sessions: 2, lastConnectedAt: Date.parse('2030-01-31T12:00:00.000Z') }

test.each<{ does: string; presence: JournalReader['presence']; shown: object }>([
  {
    does: 'the journal has the connected sessions',
    presence: () => Promise.resolve(new Map([['u', { sessions: 1, lastConnectedAt: 7 }]])),
    shown: { sessions: 1, lastConnectedAt: 7 },
  },
  {
    does: 'a tunnel without records has no sessions',
    presence: () => Promise.resolve(new Map()),
    shown: { sessions: 0, lastConnectedAt: undefined },
  },
  {
    does: 'an unavailable journal is replaced by the status',
    presence: fails(new MooringError('journal_away', 'the journal cannot be read now')),
    shown: inStatus,
  },
  {
    does: 'a journal that does not respond is replaced by the status',
    presence: () => new Promise(() => undefined),
    shown: inStatus,
  },
])('$does', async ({ presence, shown }) => {
  const presenceOf = createPresenceLookup({ journal: { presence }, waitMs: 20 })
  expect((await presenceOf([tunnel]))(tunnel)).toEqual(shown)
})

test('an unexpected error is thrown', async () => {
  const presenceOf = createPresenceLookup({ journal: { presence: fails(new TypeError('no')) } })
  await expect(presenceOf([tunnel])).rejects.toThrow(TypeError)
})
