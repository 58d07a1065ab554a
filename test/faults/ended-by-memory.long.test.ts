import { expect, test } from 'vitest'
import { codeOf, type Instance } from '../support/api/answers.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { openMongodb } from '../support/families/family-client.ts'
import { limitMemory, useUpMemory } from '../support/mongodb/memory.ts'
import { LATER } from '../support/patience.ts'
import { readRecords } from '../../operator/server/process/files/paths.ts'
import { join } from 'node:path'

const LOGIN_FAILED = expect.objectContaining({ code: 18 }) as Error

test('a tenant that ends its MongoDB server by memory is suspended, and cannot end it again; its neighbour goes on', async () => {
  await using mooring = await startMooring({ args: ['--compatible-motors'] })
  const create = async (identifier: string): Promise<Instance> => {
    const body = { identifier, region: mooring.ready.region, motor: 'mongodb-7.0.2' }
    const answer = await mooring.call('POST', '/v1/instances', { body })
    expect(codeOf(answer)).toBe('201 OK')
    return answer.body.data.instance
  }
  const [greedy, neighbour] = [await create('greedy'), await create('neighbour')]
  const records = [...(await readRecords(join(mooring.dataDir, 'servers'))).values()]
  const pid = records.find(({ binaries }) => binaries.startsWith('mongodb'))?.process?.pid ?? 0
  await limitMemory(pid)

  // A client that repeats the statement as long as its login works, and whose driver connects again by itself.
  const client = await openMongodb(greedy)
  const attack = (async () => {
    for (;;) {
      try {
        await useUpMemory(client, greedy.name)
      } catch (error) {
        // Rejected at its login, or logged out.
        if ([18, 13].includes(Number((error as { code?: unknown }).code))) return 'refused'
      }
    }
  })()
  expect(await attack).toBe('refused')
  await client.close()
  await expect(openMongodb(greedy)).rejects.toThrow(LOGIN_FAILED)
  const other = await openMongodb(neighbour)
  await expect.poll(() => other.db(neighbour.name).collection('kept').insertOne({}), LATER).toMatchObject({ acknowledged: true })
  await other.close()
  expect(mooring.output()).toContain('"cause":"memory"')
}, 600_000)
