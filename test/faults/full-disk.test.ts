import { once } from 'node:events'
import { mkdir, mkdtempDisposable, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Answer, codeOf } from '../support/api/answers.ts'
import { engineProcesses, tenantsListed, tenantsOf } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring, freePorts, PORTS, runMooring } from '../support/deployment/mooring.ts'
import { smallDisk } from '../support/postgresql/disks.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

const UNLIMITED = ['--write-rate', '100000', '--write-burst', '100000', '--read-rate', '100000', '--read-burst', '100000']

const create = (mooring: Mooring, identifier: string): Promise<Answer> =>
  mooring.call('POST', '/v1/instances', {
    body: { identifier, region: mooring.ready.region, motor: 'postgresql-15.4.0' },
    headers: { 'Idempotency-Key': identifier },
  })

/** Renames an instance until the API rejects it. Returns the last acknowledged name and the rejection. */
async function renameUntilRefused(mooring: Mooring, id: string): Promise<{ acknowledged: string; refusal: Answer }> {
  let acknowledged = ''
  for (let round = 0; ; round++) {
    const identifier = `round ${round}`
    const answer = await mooring.call('PATCH', `/v1/instances/${id}`, { body: { identifier } })
    if (answer.status !== 200) return { acknowledged, refusal: answer }
    acknowledged = identifier
  }
}

test('a full disk makes writes 503, loses no acknowledged write, and needs only free space to recover', async () => {
  await using disk = await smallDisk(8)
  await using elsewhere = await mkdtempDisposable(join(tmpdir(), 'mooring-'))
  await mkdir(join(elsewhere.path, 'servers'))
  await symlink(join(elsewhere.path, 'servers'), join(disk.dir, 'servers'))
  const first = await startMooring({ dataDir: disk.dir, args: UNLIMITED })
  const { instance } = (await create(first, 'before')).body.data

  const makeRoom = await disk.fill()
  const { acknowledged, refusal } = await renameUntilRefused(first, instance.id)
  expect(codeOf(refusal)).toBe('503 unavailable')
  expect(refusal.headers).toHaveProperty('retry-after')
  const seen = (await first.call('GET', `/v1/instances/${instance.id}`)).body.data.instance
  if (acknowledged !== '') expect(seen.identifier).toBe(acknowledged)
  expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  expect(codeOf(await create(first, 'refused'))).toBe('503 unavailable')

  await makeRoom()
  await expect.poll(async () => codeOf(await create(first, 'refused')), LATER).toBe('201 OK')
  const { instance: late } = (await create(first, 'refused')).body.data
  expect(await tenantsOf(disk.dir)).toEqual(await tenantsListed(first))

  first.process.kill('SIGKILL')
  await once(first.process, 'exit')
  const makeRoomAgain = await disk.fill()
  const { ended } = runMooring(['--data-dir', disk.dir, ...freePorts(...PORTS)])
  const { code, stderr } = await ended
  expect({ code, sentence: /^mooring: .*$/m.test(stderr), stack: stderr.includes('Node.js v') }).toEqual({
    code: 1,
    sentence: true,
    stack: false,
  })
  expect(await engineProcesses(disk.dir)).toEqual([])
  await makeRoomAgain()

  await using second = await startMooring({ dataDir: disk.dir })
  const { instances } = (await second.call('GET', '/v1/instances')).body.data
  expect(instances.map(({ id, identifier }) => ({ id, identifier }))).toEqual([
    { id: late.id, identifier: 'refused' },
    { id: instance.id, identifier: seen.identifier },
  ])
  for (const each of [instance, late]) expect(await query(each, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})
