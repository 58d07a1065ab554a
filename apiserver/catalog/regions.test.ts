import { expect, test } from 'vitest'
import type { Region } from '../../crds/region.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { region, REGION_ID } from '../../test/builders/resources.ts'
import { enginesOf } from './catalog-routes.ts'
import { createRegions, servedMotors } from './regions.ts'

const elsewhere = region({ id: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a02', regionId: 2, name: 'elsewhere', motors: [] })
const list = () => [region(), elsewhere]
const cache = { list } as unknown as Cache<typeof Region>
const regions = createRegions({ regions: cache, motorsOf: servedMotors })

test('a region shows its motors', () => {
  expect(regions.view(region())).toEqual({
    id: REGION_ID,
    name: 'local',
    regionId: 1,
    motors: [{ id: 'postgresql-15.4.0', version: '15.4.0', supported: true }],
    tunnels: false,
  })
})

test.each([
  { active: true, replicas: 1, tunnels: true },
  { active: true, replicas: 0, tunnels: false },
  { active: false, replicas: 1, tunnels: false },
])('a region has tunnels when an endpoint accepts new ones (active: $active, replicas: $replicas)', ({ tunnels, ...spec }) => {
  const endpoints = { list: () => [{ spec: { region: REGION_ID, ...spec } }] } as unknown as Cache<typeof TunnelEndpoint>
  expect(createRegions({ regions: cache, motorsOf: servedMotors, endpoints }).view(region())).toMatchObject({ tunnels })
})

test('a region is found by its id in any case', () => {
  const { region: found } = regions.choose({ region: REGION_ID.toUpperCase(), motor: 'postgresql-15.4.0' })
  expect(found.spec.name).toBe('local')
})

test.each([
  {
    does: 'an id that no region has',
    requested: { region: '42', motor: 'postgresql-15.4.0' },
    code: 'unknown_region',
    field: 'region',
  },
  {
    does: 'a motor outside the seven',
    requested: { region: REGION_ID, motor: 'oracle-23' },
    code: 'unsupported_motor',
    field: 'motor',
  },
  {
    does: 'one the region lacks',
    requested: { region: REGION_ID, motor: 'mysql-8.0.29' },
    code: 'unsupported_motor',
    field: 'motor',
  },
])('$does is refused as $code', ({ requested, code, field }) => {
  const details = [expect.objectContaining({ field }) as unknown]
  expect(() => regions.choose(requested)).toThrow(expect.objectContaining({ code, details }))
})

test('an error lists the motors of the region', () => {
  expect(() => regions.choose({ region: REGION_ID, motor: 'mysql-8.0.29' })).toThrow(
    'region local does not serve mysql-8.0.29; it serves postgresql-15.4.0',
  )
  expect(() => regions.choose({ region: elsewhere.spec.id, motor: 'mysql-8.0.29' })).toThrow('it serves no motors')
})

test('an unsupported motor is rejected with its reason', () => {
  const motorsOf = () => [{ id: 'mysql-8.0.29', version: '8.0.29', supported: false, reason: 'no binaries' }] as const
  const { choose } = createRegions({ regions: cache, motorsOf })
  expect(() => choose({ region: REGION_ID, motor: 'mysql-8.0.29' })).toThrow('(no binaries)')
})

test('an unsupported motor is rejected with what makes the installation serve it', () => {
  const motorAdvice = (motor: string) => (motor === 'mysql-8.0.29' ? 'run: npm run engines -- add mysql-8.0.29' : undefined)
  const { choose } = createRegions({ regions: cache, motorsOf: servedMotors, motorAdvice })
  const refused = (motor: string) => () => choose({ region: REGION_ID, motor })
  expect(refused('mysql-8.0.29')).toThrow('does not serve mysql-8.0.29 (run: npm run engines -- add mysql-8.0.29); it serves')
  expect(refused('mongodb-7.0.2')).toThrow('region local does not serve mongodb-7.0.2; it serves')
  expect(refused('oracle-23')).toThrow('oracle-23 is not a motor')
})

test('a deleted region is named by its id', () => {
  expect(regions.nameOf('0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a99')).toBe('0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a99')
})

test('each engine is listed once, in the order of MOTORS', () => {
  const both = region({
    motors: [
      { id: 'postgresql-15.4.0', warm: true },
      { id: 'mysql-5.7.38', warm: false },
    ],
  })
  const addons = ['firewall', 'private-network']
  expect(enginesOf([regions.view(region()), regions.view(both)])).toEqual([
    { id: 'mysql-5.7.38', family: 'mysql', version: '5.7.38', supported: true, addons },
    { id: 'postgresql-15.4.0', family: 'postgresql', version: '15.4.0', supported: true, addons },
  ])
})

test('the SSH tunnel is an add-on of the engines in regions with edges, and monitoring one of installations with a journal', () => {
  const views = [
    { ...regions.view(region()), tunnels: true },
    { ...regions.view(region({ motors: [{ id: 'mysql-5.7.38', warm: false }] })), tunnels: false },
  ]
  const common = ['firewall', 'private-network']
  expect(enginesOf(views, { records: {} }).map(({ id, addons }) => [id, addons])).toEqual([
    ['mysql-5.7.38', [...common, 'monitoring']],
    ['postgresql-15.4.0', [...common, 'ssh-tunnel', 'monitoring']],
  ])
})

test('point-in-time recovery is an add-on of PostgreSQL where the installation has backups', () => {
  const mixed = region({
    motors: [
      { id: 'postgresql-15.4.0', warm: true },
      { id: 'mysql-5.7.38', warm: false },
    ],
  })
  const offers = enginesOf([regions.view(mixed)], { restoreGrants: () => 'grant' })
  const withRecovery = offers.filter(({ addons }) => addons.includes('point-in-time-recovery'))
  expect(withRecovery.map(({ id }) => id)).toEqual(['postgresql-15.4.0'])
})

test('an engine in containers of Docker has no point-in-time recovery', () => {
  const motors = (['postgresql-14.4.0', 'postgresql-15.4.0'] as const).map((id) => ({ id, warm: false }))
  const withoutBackups = new Set(['postgresql-15.4.0'] as const)
  const offers = enginesOf([regions.view(region({ motors }))], { restoreGrants: () => 'grant', withoutBackups })
  const withRecovery = offers.filter(({ addons }) => addons.includes('point-in-time-recovery'))
  expect(withRecovery.map(({ id }) => id)).toEqual(['postgresql-14.4.0'])
})
