import { expect, test } from 'vitest'
import { mongodConf } from './mongodb/settings.ts'
import { mysqlSettings } from './mysql/settings.ts'
import { postgresqlSettings } from './postgresql/settings.ts'
import { connectionsOf, sizeKey } from './size.ts'

const SMALL = { cpu: 1, memoryMiB: 1_024, storageGiB: 10 }
const LARGE = { cpu: 4, memoryMiB: 16_384, storageGiB: 200 }

test.each([
  { memoryMiB: 128, connections: 25 },
  { memoryMiB: 1_024, connections: 128 },
  { memoryMiB: 16_384, connections: 500 },
])('a server with $memoryMiB MiB has $connections connections for its tenant', ({ memoryMiB, connections }) => {
  expect(connectionsOf({ memoryMiB })).toBe(connections)
})

const postgresql = { listen: '*', port: 5432, hbaFile: 'hba' }
const mysql = { family: 'mysql', listen: '*', port: 3306, data: 'data', initFile: 'init' } as const
const mongodb = { listen: '0.0.0.0', port: 27_017, dataDirectory: 'data', keyFile: 'key' }

test('PostgreSQL has a quarter of the memory for its buffers, and a tenth of the storage for its WAL', () => {
  expect(postgresqlSettings({ ...postgresql, size: SMALL })).toMatchObject({
    ...{ shared_buffers: '256MB', effective_cache_size: '768MB', maintenance_work_mem: '64MB', work_mem: '2048kB' },
    ...{ max_wal_size: '1024MB', temp_file_limit: '2560MB', max_connections: '182', max_parallel_workers: '2' },
  })
  expect(postgresqlSettings({ ...postgresql, size: LARGE })).toMatchObject({
    ...{ shared_buffers: '4096MB', max_wal_size: '16384MB', max_connections: '554', max_parallel_workers: '4' },
  })
})

test('MySQL has half of the memory for its buffer pool', () => {
  const settings = mysqlSettings({ ...mysql, size: SMALL })
  expect(settings).toMatchObject({ innodb_buffer_pool_size: '512M', max_connections: '182' })
  expect(settings.innodb_temp_data_file_path).toBe('ibtmp1:12M:autoextend:max:2G')
})

test.each([
  { size: SMALL, cache: '0.25', connections: 188 },
  { size: LARGE, cache: '7.5', connections: 560 },
])('MongoDB with $size.memoryMiB MiB has a cache of $cache GiB', ({ size, cache, connections }) => {
  const conf = mongodConf({ ...mongodb, size })
  expect(conf).toContain(`cacheSizeGB: ${cache}\n`)
  expect(conf).toContain(`maxIncomingConnections: ${connections}\n`)
})

test('the settings of a shared server are independent of sizes', () => {
  expect(postgresqlSettings(postgresql)).toMatchObject({
    shared_buffers: '64MB',
    temp_file_limit: '512MB',
    max_connections: '654',
  })
})

test('each size has a key of its own, and a shared server the empty one', () => {
  expect(new Set([SMALL, LARGE, undefined].map(sizeKey)).size).toBe(3)
  expect(sizeKey(undefined)).toBe('')
})
