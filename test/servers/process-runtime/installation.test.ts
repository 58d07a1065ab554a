import { execFile } from 'node:child_process'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { BINARIES, directoryOf } from '../../../operator/server/process/programs/binaries.ts'
import {
  copyEngine,
  distrustExtensions,
  installEngine,
  linkLibraries,
} from '../../../operator/server/process/programs/installation.ts'

const [binaries] = BINARIES
if (!binaries) throw new Error('there are no binaries')

const CONTROL = 'native/share/postgresql/extension/citext.control'
const CITEXT = `# citext extension\ndefault_version = '1.6'\nrelocatable = true\ntrusted = true\n`

interface Scratch extends AsyncDisposable {
  /** Directory of a package as npm unpacks it under the umask 077. */
  readonly source: string
  /** Directory for copies of the package. */
  readonly copies: string
}

async function scratch(): Promise<Scratch> {
  const root = await mkdtemp(join(tmpdir(), 'mooring-install-'))
  const source = join(root, 'package')
  await mkdir(join(source, 'native/lib/postgresql'), { recursive: true, mode: 0o700 })
  await mkdir(join(source, 'native/bin'), { mode: 0o700 })
  await writeFile(join(source, 'native/bin/postgres'), '#!/bin/sh\necho "postgres 15.4"\n', { mode: 0o700 })
  await writeFile(join(source, 'native/lib/libpq.so.5.15'), 'a library', { mode: 0o600 })
  const links = [{ source: 'native/lib/libpq.so.5.15', target: 'native/lib/libpq.so.5' }]
  await writeFile(join(source, 'native/pg-symlinks.json'), JSON.stringify(links))
  await mkdir(join(source, 'native/share/postgresql/extension'), { recursive: true, mode: 0o700 })
  await writeFile(join(source, CONTROL), CITEXT)
  return { source, copies: join(root, 'mooring', 'engines'), [Symbol.asyncDispose]: () => rm(root, { recursive: true }) }
}

const PACKAGE = {
  label: 'postgresql',
  part: 'native',
  changes: 'links',
  apply: linkLibraries,
}
const copyPackage = ({ source, copies }: Scratch): Promise<string> => copyEngine(source, copies, PACKAGE)

test('a package that its user can access is not copied', async () => {
  // Its owner can, whatever the permissions of the directories above the repository.
  const { uid, gid } = await lstat((await directoryOf(binaries)) ?? '')
  expect(await installEngine(binaries, { user: { uid, gid } })).toBe(await directoryOf(binaries))
})

test('a copy runs, is writable only for its creator, and is created once by concurrent calls', async () => {
  await using at = await scratch()
  const paths = await Promise.all([1, 2, 3].map(() => copyPackage(at)))
  expect(new Set(paths).size).toBe(1)
  expect(await readdir(at.copies)).toHaveLength(1)
  const [path = ''] = paths
  for (const name of ['', 'native', 'native/lib/postgresql', 'native/bin/postgres']) {
    expect((await lstat(join(path, name))).mode & 0o777).toBe(0o755)
  }
  expect(await readFile(join(path, 'native/lib/libpq.so.5'), 'utf8')).toBe('a library')
  const { stdout } = await promisify(execFile)(join(path, 'native/bin/postgres'), ['--version'])
  expect(stdout).toContain('15.4')
  expect(await copyPackage(at)).toBe(path)
})

test.each(['the copy', 'its parent'])('an installation fails when other users may write to %s', async (which) => {
  await using at = await scratch()
  const path = await copyPackage(at)
  await chmod(which === 'the copy' ? path : dirname(path), 0o777)
  await expect(copyPackage(at)).rejects.toMatchObject({ code: 'unsafe_directory' })
})

test('missing links of libraries are created', async () => {
  await using at = await scratch()
  await Promise.all([linkLibraries(at.source), linkLibraries(at.source)])
  await linkLibraries(at.source)
  expect(await readlink(join(at.source, 'native/lib/libpq.so.5'))).toBe('libpq.so.5.15')
})

test('no extension stays trusted, and the rest of a control file is unchanged', async () => {
  await using at = await scratch()
  await Promise.all([distrustExtensions(at.source), distrustExtensions(at.source)])
  await distrustExtensions(at.source)
  const distrusted = CITEXT.replace('trusted = true\n', '')
  expect(await readFile(join(at.source, CONTROL), 'utf8')).toBe(distrusted)
  expect(await readdir(join(at.source, 'native/share/postgresql/extension'))).toEqual(['citext.control'])
})

test('an engine of the cache that its user cannot reach runs from a copy', async () => {
  await using at = await scratch()
  const cache = join(dirname(at.source), 'cache')
  const mariadb = BINARIES.find(({ id }) => id === 'mariadb-10.11.19')
  if (!mariadb) throw new Error('no binaries of MariaDB')
  const install = (): Promise<string> => installEngine(mariadb, { cache, copies: at.copies, user: { uid: 65_534, gid: 65_534 } })
  await expect(install()).rejects.toMatchObject({ code: 'engine_not_installed' })
  const directory = join(cache, mariadb.id)
  for (const name of ['bin', 'share/charsets', 'lib']) await mkdir(join(directory, name), { recursive: true })
  await writeFile(join(directory, mariadb.executable), '#!/bin/sh\necho "mariadbd 10.11.19"\n', { mode: 0o755 })
  await writeFile(join(directory, 'lib/libaio.so.1'), 'a library')
  await chmod(cache, 0o700)
  const copy = await install()
  expect(dirname(copy)).toBe(at.copies)
  expect(await readFile(join(copy, 'lib/libaio.so.1'), 'utf8')).toBe('a library')
  const { stdout } = await promisify(execFile)(join(copy, mariadb.executable))
  expect(stdout).toContain('10.11.19')
})
