import { chmod, lstat, mkdir, mkdtempDisposable, readdir, readlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { Motor } from '../../../../crds/motor.ts'
import type { CompatibleMotors } from './binaries.ts'
import { familyOfOwn, linkOwnEngine, openOwnEngine, versionIn } from './own-engine.ts'

const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
const MARIADB = 'mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)'

/** Creates a server in the layout of an archive, whose program prints `output` and needs its libraries. */
async function serverThatPrints(output: string) {
  const scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-own-'))
  const prefix = join(scratch.path, 'server')
  const program = join(prefix, 'bin/mariadbd')
  for (const name of ['bin', 'lib/plugin', 'share/charsets']) await mkdir(join(prefix, name), { recursive: true })
  await writeFile(join(prefix, 'share/charsets/Index.xml'), '')
  await writeFile(program, `#!/bin/sh\n[ "$LD_LIBRARY_PATH" = ${prefix}/lib ] && echo '${output}'\n`, { mode: 0o755 })
  return {
    prefix,
    program,
    parent: join(scratch.path, 'engines/links'),
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  }
}

const rows: readonly { does: string; output: string; motor: Motor; compatible: CompatibleMotors; says: string | undefined }[] = [
  {
    does: 'serves the exact version',
    output: 'postgres (PostgreSQL) 15.4',
    motor: 'postgresql-15.4.0',
    compatible: 'exact',
    says: undefined,
  },
  { does: 'serves its series when asked', output: MARIADB, motor: 'mariadb-10.7.4', compatible: 'nearest', says: undefined },
  {
    does: 'serves the series that Mooring installs for the motor when asked',
    output: 'db version v6.0.27',
    motor: 'mongodb-7.0.2',
    compatible: 'nearest',
    says: undefined,
  },
  {
    does: 'refuses another version',
    output: MARIADB,
    motor: 'mariadb-10.7.4',
    compatible: 'exact',
    says: 'is version 10.11.19; start with',
  },
  {
    does: 'refuses another series',
    output: 'mysqld  Ver 8.4.0 for Linux on x86_64',
    motor: 'mysql-8.0.29',
    compatible: 'nearest',
    says: 'is version 8.4.0, of another series',
  },
  {
    does: 'refuses another family',
    output: MARIADB,
    motor: 'mysql-8.0.29',
    compatible: 'nearest',
    says: 'is a server of mariadb',
  },
  { does: 'refuses another program', output: 'curl 8', motor: 'mysql-8.0.29', compatible: 'nearest', says: 'is no server' },
]

test.each(rows)('a program of the machine $does', async ({ output, motor, compatible, says }) => {
  await using server = await serverThatPrints(output)
  const opening = openOwnEngine({ motor, program: server.program }, { user, compatible })
  if (says === undefined) expect(await opening).toMatchObject({ id: `own-${motor}`, source: 'program', program: server.program })
  else await expect(opening).rejects.toMatchObject({ code: 'engine_unusable', message: expect.stringContaining(says) as string })
})

test.each([
  { versions: 'TLSv1,TLSv1.1', isOld: true },
  { versions: 'TLSv1,TLSv1.1,TLSv1.2', isOld: false },
  { versions: 'TLSv1.2,TLSv1.3', isOld: false },
  { versions: '(No default value)', isOld: false },
])('a MySQL of the machine with TLS versions $versions has old TLS: $isOld', async ({ versions, isOld }) => {
  await using server = await serverThatPrints(`mysqld  Ver 5.7.30 for Linux\ntls-version           ${versions}\n`)
  expect(await openOwnEngine({ motor: 'mysql-5.7.38', program: server.program }, { user, compatible: 'nearest' })).toMatchObject({
    hasOldTls: isOld,
  })
})

test.each([
  { what: 'is missing', mode: undefined, says: 'does not exist' },
  { what: 'is not executable', mode: 0o644, says: `cannot be executed by user ${user.uid}` },
])('a program that $what is refused', async ({ mode, says }) => {
  await using server = await serverThatPrints(MARIADB)
  if (mode !== undefined) await chmod(server.program, mode)
  const program = mode === undefined ? `${server.program}-not` : server.program
  const opening = openOwnEngine({ motor: 'mariadb-10.7.4', program }, { user, compatible: 'nearest' })
  await expect(opening).rejects.toMatchObject({ message: expect.stringContaining(says) as string })
})

test('the installation of a program is a directory of links with the layout of other installations', async () => {
  await using server = await serverThatPrints(MARIADB)
  const { prefix, program, parent } = server
  const binaries = await openOwnEngine({ motor: 'mariadb-10.7.4', program }, { user, compatible: 'nearest' })
  const [installation, other] = await Promise.all([linkOwnEngine(binaries, parent), linkOwnEngine(binaries, parent)])
  expect(other).toBe(installation)
  expect(await readdir(parent)).toHaveLength(1)
  expect(dirname(installation)).toBe(parent)
  expect((await lstat(installation)).mode & 0o777).toBe(0o755)
  const links = { 'bin/mariadbd': 'bin/mariadbd', share: 'share', plugin: 'lib/plugin', lib: 'lib' }
  for (const [name, target] of Object.entries(links)) expect(await readlink(join(installation, name))).toBe(join(prefix, target))
  const shown = await Promise.all(
    (await readdir(join(installation, 'shown'))).map((name) => readlink(join(installation, 'shown', name))),
  )
  expect(shown.toSorted()).toEqual(['bin/mariadbd', 'lib', 'lib/plugin', 'share'].map((name) => join(prefix, name)))
})

test.each([
  { id: 'own-mysql-8.0.29', family: 'mysql' },
  { id: 'own-oracle-23', family: undefined },
  { id: 'mysql-8.0.15', family: undefined },
])('the family of $id is $family', ({ id, family }) => {
  expect(familyOfOwn(id)).toBe(family)
})

test.each([
  { output: 'postgres (PostgreSQL) 15.4\n', version: '15.4' },
  { output: 'postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)\n', version: '15.20' },
  { output: '/srv/mysqld  Ver 8.0.15 for Linux on x86_64 (MySQL Community Server - GPL)\n', version: '8.0.15' },
  { output: 'mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n', version: '10.11.19' },
  { output: 'db version v6.0.27\nBuild Info: {\n    "version": "6.0.27",\n', version: '6.0.27' },
  { output: 'curl 8.1.2 (x86_64)\n', version: undefined },
])('the version of a server that prints $output is $version', ({ output, version }) => {
  expect(versionIn(output)).toBe(version)
})
