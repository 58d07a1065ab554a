import { chown, mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf, type Instance } from '../support/api/answers.ts'
import { serverDirectory } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { clientOf } from '../support/families/family-client.ts'
import { mysqlRows } from '../support/families/family-content.ts'

const MOTOR = 'mysql-8.0.29'
const SLOW = { timeout: 300_000 }
const PATIENCE = { timeout: 120_000, interval: 500 }

async function made(mooring: Mooring): Promise<Instance> {
  const body = { identifier: 'stray', region: mooring.ready.region, motor: MOTOR }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.instance
}

/** Leaves what a kill of MySQL 8.0 leaves between the two steps of DROP DATABASE: the directory without the database. */
async function leaveDirectory(data: string, instance: Instance): Promise<void> {
  await mysqlRows(instance, `DROP DATABASE ${instance.name}`)
  const directory = join(data, instance.name)
  await mkdir(directory, { mode: 0o750 })
  const { uid, gid } = await stat(data)
  await chown(directory, uid, gid)
}

test('reset and deletion of a database succeed after a crash left only its directory, and leave no directory', SLOW, async () => {
  await using mooring = await startMooring({ args: ['--compatible-motors', '--warm', MOTOR] })
  const instance = await made(mooring)
  const data = join(await serverDirectory(mooring.dataDir, MOTOR), 'data')
  const before = (await readdir(data)).filter((name) => name !== instance.name && !name.startsWith('#'))
  const client = clientOf(MOTOR)
  await client.add(instance, 'lost')

  await leaveDirectory(data, instance)
  const reset = () => mooring.call('POST', `/v1/instances/${instance.id}/reset`).then(codeOf)
  await expect.poll(reset, PATIENCE).toBe('200 OK')
  expect(await client.items(instance)).toEqual([])
  await client.add(instance, 'kept')
  expect(await client.items(instance)).toEqual(['kept'])

  await leaveDirectory(data, instance)
  const remove = () => mooring.call('DELETE', `/v1/instances/${instance.id}`).then(({ status }) => status)
  await expect.poll(remove, PATIENCE).toBe(404)
  const left = async () => (await readdir(data)).filter((name) => !name.startsWith('#'))
  await expect.poll(left, PATIENCE).toEqual(before)
})
