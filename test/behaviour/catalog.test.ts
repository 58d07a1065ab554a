import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess } from '../support/api/tenant.ts'

const deployment = openDeployment()
afterAll(() => deployment[Symbol.asyncDispose]())

const MOTORS = [
  'mysql-5.7.38',
  'mysql-8.0.29',
  'mariadb-10.7.4',
  'postgresql-14.4.0',
  'postgresql-15.4.0',
  'mongodb-5.0.9',
  'mongodb-7.0.2',
]
const Motor = z.strictObject({ id: z.enum(MOTORS), version: z.string().regex(/^\d+\.\d+\.\d+$/), supported: z.boolean() })
const Region = z.strictObject({
  id: z.uuid(),
  name: z.string().min(1),
  regionId: z.int(),
  motors: z.array(Motor),
  tunnels: z.boolean(),
})
const Engine = z.strictObject({
  ...Motor.shape,
  family: z.enum(['mysql', 'mariadb', 'postgresql', 'mongodb']),
  addons: z.array(z.string()),
})
const Price = z.strictObject({ amount: z.string().regex(/^\d+(\.\d+)?$/), currency: z.string(), unit: z.string() })
const Plan = z.strictObject({
  ...{ id: z.string(), name: z.string(), cpu: z.number(), memoryMiB: z.int(), storageGiB: z.int() },
  engines: z.array(z.enum(MOTORS)),
  price: Price,
})
const Metadata = z.strictObject({
  engines: z.array(Engine),
  regions: z.array(Region),
  plans: z.array(Plan),
  billableItems: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      kind: z.enum(['plan', 'storage', 'backup']),
      unit: z.string(),
      price: Price,
    }),
  ),
  addons: z.array(z.strictObject({ id: z.string(), name: z.string(), engines: z.array(z.string()) })),
})

const get = async (path: string, on: 'shared' | 'dedicated') =>
  (await expectSuccess(deployment.call('GET', path, { on }))).body.data

describe('GET /v1/regions', () => {
  test.each(['shared', 'dedicated'] as const)('lists each region and its engines on the %s listener', async (on) => {
    const { regions } = z.strictObject({ regions: z.array(Region), nextCursor: z.null() }).parse(await get('/v1/regions', on))
    const { region, motor } = deployment.installation
    expect(regions.find(({ id }) => id === region.id)).toMatchObject({
      name: region.name,
      motors: expect.arrayContaining([{ id: motor, version: '15.4.0', supported: true }]) as unknown,
    })
  })
})

describe('GET /v1/engines', () => {
  test('lists the engines that at least one region runs', async () => {
    const { engines } = z
      .strictObject({ engines: z.array(Engine), nextCursor: z.null() })
      .parse(await get('/v1/engines', 'dedicated'))
    const { regions } = z.object({ regions: z.array(Region) }).parse(await get('/v1/regions', 'dedicated'))
    const run = new Set(regions.flatMap(({ motors }) => motors.map(({ id }) => id)))
    expect(new Set(engines.map(({ id }) => id))).toEqual(run)
    for (const { id, family, version, addons } of engines) {
      const recovery = family === 'postgresql' ? ['point-in-time-recovery'] : []
      const offered = ['firewall', 'private-network', 'ssh-tunnel', 'monitoring', ...recovery]
      expect([id, addons]).toEqual([`${family}-${version}`, offered])
    }
  })

  test('lists each engine once across pages, in a stable order', async () => {
    const Page = z.strictObject({ engines: z.array(Engine), nextCursor: z.string().nullable() })
    const found: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const { engines, nextCursor } = Page.parse(await get(`/v1/engines?limit=1${cursor && `&cursor=${cursor}`}`, 'dedicated'))
      expect(engines).toHaveLength(1)
      found.push(...engines)
      cursor = nextCursor
    }
    expect(found).toEqual(Page.parse(await get('/v1/engines', 'dedicated')).engines)
    for (const query of ['limit=201', 'cursor=x']) {
      expect((await deployment.call('GET', `/v1/engines?${query}`, { on: 'dedicated' })).status).toBe(400)
    }
  })
})

describe('GET /v1/databases/create/metadata', () => {
  test('returns everything that a form for a new database needs', async () => {
    const { metadata } = z.strictObject({ metadata: Metadata }).parse(await get('/v1/databases/create/metadata', 'dedicated'))
    expect(metadata.engines).toEqual(((await get('/v1/engines', 'dedicated')) as unknown as { engines: unknown }).engines)
    expect(metadata.regions).toEqual((await get('/v1/regions', 'dedicated')).regions)
    const engines = metadata.engines.map(({ id }) => id)
    const postgresql = engines.filter((id) => id.startsWith('postgresql-'))
    expect(metadata.addons).toEqual([
      { id: 'firewall', name: 'Firewall', engines },
      { id: 'private-network', name: 'Private networking', engines },
      { id: 'ssh-tunnel', name: 'SSH tunnel', engines },
      { id: 'monitoring', name: 'Monitoring', engines },
      { id: 'point-in-time-recovery', name: 'Point-in-time recovery', engines: postgresql },
    ])
    expect(metadata.plans.every(({ id }) => metadata.billableItems.some((item) => item.id === id))).toBe(true)
  })
})
