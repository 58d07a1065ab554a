import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { Instance } from '../support/api/answers.ts'
import { adminLogins } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { clientOf } from '../support/families/family-client.ts'
import { logEverything } from '../support/families/full-logging.ts'
import { LATER } from '../support/patience.ts'

/** Runs the whole life of an instance. Returns its passwords. */
async function live(mooring: Mooring, motor: string): Promise<readonly string[]> {
  const instanceOf = async (method: string, path: string, body?: unknown): Promise<Instance> => {
    const answer = await mooring.call(method, path, { body })
    expect(answer.status).toBeLessThan(300)
    return answer.body.data.instance
  }
  const create = (rest: object): Promise<Instance> =>
    instanceOf('POST', '/v1/instances', { identifier: 'logged', region: mooring.ready.region, motor, ...rest })

  const client = clientOf(motor)
  const first = await create({})
  const path = `/v1/instances/${first.id}`
  const second = await instanceOf('POST', `${path}/password`)
  await client.add(second, 'row')
  await instanceOf('PATCH', path, { isEnabled: false })
  const third = await instanceOf('POST', `${path}/password`)
  await instanceOf('PATCH', path, { isEnabled: true })
  const copy = await create({ template: first.id })
  expect(await client.items(copy)).toEqual(['row'])
  await instanceOf('POST', `${path}/reset`)
  for (const { id } of [copy, first]) expect((await mooring.call('DELETE', `/v1/instances/${id}`)).status).toBe(200)
  return [first, second, third, copy].map(({ password }) => password)
}

/** Returns the files below a directory that contain one of the texts. */
async function filesWith(directory: string, texts: readonly string[]): Promise<readonly string[]> {
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const found = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const content = await readFile(join(parentPath, name)).catch(() => Buffer.alloc(0))
      return texts.some((text) => content.includes(text)) ? join(parentPath, name).slice(directory.length) : undefined
    }),
  )
  return found.filter((name) => name !== undefined)
}

test.each(['postgresql-15.4.0', 'mariadb-10.7.4', 'mysql-8.0.29', 'mysql-5.7.38', 'mongodb-7.0.2'])(
  'no password is in a log or file when Mooring and a server of %s log everything',
  async (motor) => {
    await using mooring = await startMooring({ args: ['--compatible-motors', '--warm', motor, '--log-level', 'debug'] })
    const login = await vi.waitUntil(async () => (await adminLogins(mooring.dataDir))[0], LATER)
    await logEverything(login)
    const passwords = await live(mooring, motor)
    expect(new Set(passwords).size).toBe(4)
    expect(passwords.filter((password) => mooring.output().includes(password))).toEqual([])
    // The log of statements has the names of the copies, so it works.
    expect(await filesWith(join(mooring.dataDir, 'servers'), ['logged'])).not.toEqual([])
    expect(await filesWith(mooring.dataDir, [...passwords, login.target.password])).toEqual([])
  },
)
