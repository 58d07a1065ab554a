import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, type Database, type MetricsAnswer } from '../../support/api/answers.ts'
import { asInstance, createDatabase, databasePath, dedicated, untilGone, untilRunning } from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { openSession } from '../../support/families/family-session.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { patient } from '../../support/patience.ts'

/** Monitoring of a dedicated database of each motor, from outside. */

const PATIENCE = { timeout: 60_000, interval: 500 }
const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const metricsOf = async ({ id }: Pick<Database, 'id'>, window = '1h'): Promise<MetricsAnswer> =>
  (await expectSuccess(dedicated(acme.as('viewer'))('GET', `/v1/databases/${id}/metrics?window=${window}`))).body.data.metrics

/** Returns the starts of the intervals that have a sample. They can be two, as a test may run past the end of an interval. */
const intervalsOf = (series: MetricsAnswer['series'], stepMs: number): readonly number[] => [
  ...new Set(series.map(({ at }) => Math.floor(Date.parse(at) / stepMs) * stepMs)),
]

describe.each(motorsUnderTest())('a dedicated database of %s', (motor) => {
  const client = clientOf(motor)

  test('is measured from when monitoring is on until it is off', { timeout: patient(600_000) }, async () => {
    const editor = dedicated(acme.as('editor'))
    const body = { ...{ organization: acme.organization, namespace: acme.namespace }, engine: motor, plan: 'small' }
    const name = motor.replaceAll('.', '-')
    const made = await createDatabase(editor, { ...body, name, region: deployment.installation.region.id })
    // A node has room for few of these servers, and a namespace for five.
    await using cleanup = new AsyncDisposableStack()
    cleanup.defer(async () => {
      await expectSuccess(editor('DELETE', databasePath(made)))
      await untilGone(editor, made)
    })
    const instance = asInstance(await untilRunning(editor, made))
    expect(made.monitoring).toBe(false)
    expect(await metricsOf(made)).toMatchObject({ monitoring: false, latest: null, series: [] })

    await expectSuccess(editor('PATCH', databasePath(made), { body: { monitoring: true } }))
    // In a cluster the server restarts.
    await untilRunning(editor, made)
    await client.add(instance, 'measured')
    await using session = await openSession(instance)
    await session.ping()
    await expect
      .poll(async () => (await metricsOf(made)).latest, PATIENCE)
      .toMatchObject({ transactionsPerSecond: expect.any(Number) as number, slowStatements: expect.any(Number) as number })
    const { monitoring, latest, series } = await metricsOf(made)
    expect([monitoring, latest?.backupAgeSeconds]).toEqual([true, null])
    expect(latest?.connections).toBeGreaterThanOrEqual(1)
    expect(latest?.sizeBytes).toBeGreaterThan(10_000)
    expect(series.length).toBeGreaterThan(0)
    for (const [window, stepMs] of [
      ['24h', 600_000],
      ['7d', 3_600_000],
    ] as const) {
      // A sample may come between two calls: the merged series has the intervals of before or of after.
      const before = intervalsOf((await metricsOf(made)).series, stepMs)
      const merged = (await metricsOf(made, window)).series.map(({ at }) => Date.parse(at))
      const after = intervalsOf((await metricsOf(made)).series, stepMs)
      expect([before, after], window).toContainEqual(merged)
    }
    expect(await untilRunning(editor, made)).toMatchObject({ monitoring: true })

    const off = await expectSuccess(editor('PATCH', databasePath(made), { body: { monitoring: null } }))
    expect(off.body.data.database.monitoring).toBe(false)
    expect((await metricsOf(made)).monitoring).toBe(false)
    for (const query of ['?window=1y', '?from=2026-01-01T00:00:00Z']) {
      expect(codeOf(await editor('GET', `${databasePath(made)}/metrics${query}`)), query).toBe('400 invalid_request')
    }
  })
})
