import { expect, test } from 'vitest'
import { databaseServer } from '../../test/builders/resources.ts'
import { createAdmins } from './admins.ts'

const target = { host: '127.0.0.1', port: 5432, user: 'mooring', password: 'drawn' }
const server = databaseServer({ metadata: { name: 'pg-1' } })

test('each new admin connection is announced once', async () => {
  await using admins = createAdmins()
  const opened: string[] = []
  const stop = admins.onOpen((name) => void opened.push(name))
  admins.open(server, target)
  admins.open(server, target)
  expect(opened).toEqual(['pg-1'])
  admins.open(server, { ...target, port: 5433 })
  await admins.forget('pg-1')
  admins.open(server, target)
  expect(opened).toHaveLength(3)
  stop()
  await admins.forget('pg-1')
  admins.open(server, target)
  expect(opened).toHaveLength(3)
})

test('the server is open when its connection is announced', async () => {
  await using admins = createAdmins()
  const found: unknown[] = []
  admins.onOpen((name) => void found.push(admins.get(name)))
  const way = admins.open(server, target)
  expect(found).toEqual([way?.opened])
})
