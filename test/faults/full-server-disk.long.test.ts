import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtempDisposable, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import { expect, test } from 'vitest'
import { type Answer, codeOf, type Instance } from '../support/api/answers.ts'
import { serverDirectory, tenantsListed, tenantsOf } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { clientOf } from '../support/families/family-client.ts'
import { smallDisk } from '../support/postgresql/disks.ts'
import { LATER } from '../support/patience.ts'

const run = promisify(execFile)
/** Size of the server's disk in MiB: data, the reserve, and the free space without which there is no reserve. */
const DISK = 700
const NEIGHBOUR = 'postgresql-15.4.0'

const post = (mooring: Mooring, key: string, motor: string): Promise<Answer> =>
  mooring.call('POST', '/v1/instances', {
    body: { identifier: key, region: mooring.ready.region, motor },
    headers: { 'Idempotency-Key': key },
  })

test.each(['mariadb-10.7.4', 'mysql-8.0.29', 'mongodb-7.0.2'])(
  'while the disk of a server of %s is full other families go on, and free space is all it needs',
  async (motor) => {
    const client = clientOf(motor)
    await using dir = await mkdtempDisposable(join(tmpdir(), 'mooring-'))
    await using disk = await smallDisk(DISK)
    const options = { dataDir: dir.path, args: ['--compatible-motors', '--warm', motor, '--warm', NEIGHBOUR] }

    const first = await startMooring(options)
    const { instance } = (await post(first, 'before', motor)).body.data
    await client.add(instance, 'kept')
    const directory = await serverDirectory(dir.path, motor)
    const ended = once(first.process, 'exit')
    first.process.kill('SIGTERM')
    await ended
    await run('cp', ['-a', directory, join(disk.dir, 'server')])
    await rm(directory, { recursive: true })
    await symlink(join(disk.dir, 'server'), directory)

    await using mooring = await startMooring(options)
    const works = async (of: Instance): Promise<readonly string[] | string> => client.items(of).catch(String)
    await expect.poll(() => works(instance), LATER).toEqual(['kept'])
    await expect.poll(() => access(join(directory, 'reserve')).then(() => 'kept', String), LATER).toBe('kept')

    const makeRoom = await disk.fill()
    // Some writes still fit into files that the server has already.
    await client.fill(instance, 60_000).catch(() => undefined)
    const late = await post(mooring, 'late', motor)
    expect(['201 OK', '503 unavailable']).toContain(codeOf(late))
    const near = await post(mooring, 'near', NEIGHBOUR)
    expect(codeOf(near)).toBe('201 OK')
    expect(await clientOf(NEIGHBOUR).user(near.body.data.instance)).toBe(near.body.data.instance.user)
    expect((await mooring.call('GET', `/v1/instances/${instance.id}`)).status).toBe(200)

    await makeRoom()
    await expect.poll(() => works(instance), LATER).toEqual(['kept'])
    await expect.poll(async () => codeOf(await post(mooring, 'late', motor)), LATER).toBe('201 OK')
    const { instance: after } = (await post(mooring, 'late', motor)).body.data
    await client.add(after, 'row')
    await client.add(instance, 'more')
    expect(await works(instance)).toEqual(['kept', 'more'])
    await expect.poll(async () => isDeepStrictEqual(await tenantsOf(dir.path), await tenantsListed(mooring)), LATER).toBe(true)
  },
  300_000,
)
