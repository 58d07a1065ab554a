import { execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { keyFileFor } from '../../engines/mongodb/settings.ts'
import { at } from './engine-pod.ts'
import { mongodbPod } from './mongodb.ts'

const run = promisify(execFile)
const about = { admin: 'mooring', capacity: 50, tls: true }

test('the server requires TLS, unless the region does not', () => {
  const net = (tls: boolean) => (parse(mongodbPod.files({ ...about, tls })['mongod.conf'] ?? '') as { net: unknown }).net
  expect(net(true)).toMatchObject({
    tls: { mode: 'requireTLS', certificateKeyFile: `${at.certificate}/tls.pem`, CAFile: `${at.certificate}/ca.crt` },
  })
  expect(net(false)).toMatchObject({ tls: { mode: 'disabled' } })
})

test.each(['plain', 'a line\n', `it's "quoted"`, String.raw`$HOME \`id\` \n %s *`])(
  'at every start the key file follows from the password of the Secret: %s',
  async (password) => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'initialise-'))
    const [volume, output] = [join(directory.path, 'volume'), join(directory.path, 'output')]
    for (const path of [volume, output]) await mkdir(path)
    const script = (mongodbPod.files(about)['initialise.sh'] ?? '')
      .replaceAll(mongodbPod.dataMount, volume)
      .replaceAll(`${at.admin}/password`, join(directory.path, 'password'))
      .replaceAll(at.output, output)
    for (const text of ['the first', password]) {
      await writeFile(join(directory.path, 'password'), text)
      await run('sh', ['-c', script])
    }
    expect(await readdir(volume)).toEqual(['mongodb'])
    const keyFile = join(output, 'keyfile')
    expect(await readFile(keyFile, 'utf8')).toBe(keyFileFor(password.trimEnd()))
    // MongoDB rejects a key file that others may read.
    expect((await stat(keyFile)).mode & 0o077).toBe(0)
  },
)
