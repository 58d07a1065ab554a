import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { ConnectionRecord } from '../../journal/port.ts'
import { settableClock } from '../../test/support/clocks.ts'
import { routesInMemory } from '../../test/support/edge/ssh-edge.ts'
import { createConnectionJournal } from './connection-journal.ts'
import { createSshMetrics } from './metrics.ts'

const ROUTES = routesInMemory()
const [web, shop] = [ROUTES.set('0123456789abcdef', {}), ROUTES.set('fedcba9876543210', {})]

function start() {
  const clock = settableClock()
  const records: ConnectionRecord[] = []
  const registry = new Registry()
  const told = createConnectionJournal({
    edge: 'test',
    journal: { connection: async (record) => void records.push(record) },
    limits: { refusalsPerTunnel: 60 },
    metrics: createSshMetrics(registry, () => ({ connections: 0, sessions: 0, channels: 0 })),
    log: { error: () => undefined },
    ...clock,
  })
  const sourceOf = (index: number) => `2001:db8:${(index >> 16).toString(16)}:${(index & 0xffff).toString(16)}::1`
  return {
    ...{ clock, records, told },
    refuse(route: typeof web, index: number) {
      const connection = { id: `c${index}`, clientIp: sourceOf(index), login: undefined }
      const login = { route, refusal: 'key', authMethod: 'key', fingerprint: 'SHA256:x', passwordId: undefined } as const
      told.refused(connection, login)
    },
    async counted(name: string) {
      const values = (await registry.getSingleMetric(name)?.get())?.values ?? []
      return values.reduce((sum, { value }) => sum + value, 0)
    },
  }
}

test('refused logins of a tunnel are recorded up to its limit in a minute, over all sources, and all are counted', async () => {
  const told = start()
  const { clock, records } = told
  for (let source = 0; source < 10_000; source += 1) {
    told.refuse(web, source)
    clock.pass(1)
  }
  told.refuse(shop, 1)
  expect(records.filter(({ tunnel }) => tunnel === web.id)).toHaveLength(60)
  expect(records.at(-1)).toMatchObject({ tunnel: shop.id, type: 'refused', reason: 'key', keyFingerprint: 'SHA256:x' })
  expect(await told.counted('mooring_ssh_refused_logins_total')).toBe(10_001)
  expect(await told.counted('mooring_ssh_unrecorded_refusals_total')).toBe(9_940)
  // The minute continues when the machine's clock is changed.
  clock.step(-3_600_000)
  clock.pass(50_000)
  told.refuse(web, 7)
  expect(records.at(-1)).toMatchObject({ tunnel: web.id, at: clock.date(), clientIp: '2001:db8:0:7::1' })
})

test('a login is recorded again with the same id for a new journal; a connection without a record is not', () => {
  const { told, records, clock } = start()
  const connection = (id: string) => ({ id, clientIp: '203.0.113.7', login: undefined })
  const [known, stranger] = [connection('known'), connection('stranger')]
  told.loggedIn(known, web.id)
  told.loggedIn(stranger, undefined)
  clock.pass(60_000)
  for (const one of [known, stranger]) told.again(one)
  expect(records).toMatchObject([{ type: 'connect', tunnel: web.id, sessionId: 'known' }, records[0]])
  clock.pass(90 * 86_400_000)
  told.again(known)
  const { id, ...rest } = records[0] ?? {}
  expect(records[2]).toMatchObject(rest)
  expect(records[2]?.id).not.toBe(id)
})

test('the end of a connection sorts after its login, even in the same millisecond', () => {
  const { told, records } = start()
  const end = { reason: 'client', durationMs: 0 }
  for (let count = 0; count < 1_000; count += 1) {
    const connection = { id: `c${count}`, clientIp: '203.0.113.7', login: undefined }
    told.loggedIn(connection, web.id)
    told.ended(connection, end)
  }
  const sorted = records.toSorted((a, b) => a.id.localeCompare(b.id))
  const typesOf = (sessionId: string) => sorted.filter((record) => record.sessionId === sessionId).map(({ type }) => type)
  const wrong = [...new Set(records.map(({ sessionId }) => sessionId))].filter((id) => typesOf(id)[0] !== 'connect')
  expect(wrong).toEqual([])
  expect(new Set(records.map(({ id }) => id)).size).toBe(2_000)
})
