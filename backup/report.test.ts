import { expect, test } from 'vitest'
import type { Manifest } from './postgresql/catalog/manifest.ts'
import { createCatalog } from './postgresql/catalog/catalog.ts'
import { memoryFrom, stateOf } from './report.ts'

function manifest(kind: Manifest['kind'], startedAt: string, random: string): Manifest {
  return {
    ...{
      format: 1,
      id: `20261125T100000Z-${random}`,
      kind,
      engineVersion: '15.4',
      systemIdentifier: '7',
      timeline: 1,
      dataBytes: 1,
    },
    ...{ databases: [], startSegment: 3, stopSegment: 3, startedAt, finishedAt: startedAt, parts: [] },
  }
}

test('stateOf lists the newer one of two backups that began in the same second first', () => {
  const catalog = createCatalog()
  catalog.learn(manifest('scheduled', '2026-11-25T10:00:00.100Z', 'ffff'))
  catalog.learn(manifest('requested', '2026-11-25T10:00:00.900Z', '0000'))
  const now = Date.parse('2026-11-25T10:01:00.000Z')
  const { backups } = stateOf({ memory: memoryFrom(undefined), catalog, quiet: undefined, problem: null, now })
  expect(backups.map(({ kind }) => kind)).toEqual(['requested', 'scheduled'])
})
