import { execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { SCRIPTS } from '../../engines/mysql/bootstrap.ts'
import { nativeHash } from '../../engines/mysql/settings.ts'
import { at } from './engine-pod.ts'
import { mariadbPod, mysqlPod } from './mysql.ts'

const run = promisify(execFile)
const about = { admin: 'mooring', capacity: 50, tls: true }

test.each([mysqlPod, mariadbPod])('$name requires TLS of tenants, and a client certificate of the admin', (pod) => {
  const { 'my.cnf': options = '', 'initialise.sh': script } = pod.files(about)
  expect(options).toContain('require_secure_transport=ON\n')
  expect(options).toContain(`ssl_ca=${at.certificate}/ca.crt\n`)
  expect(script).toContain("REQUIRE SUBJECT '/CN=mooring';")
})

test.each([mysqlPod, mariadbPod])('$name accepts clients without TLS where the region requires none', (pod) => {
  const { 'my.cnf': options = '', 'initialise.sh': script } = pod.files({ ...about, tls: false })
  expect(options).not.toMatch(/^(ssl_|require_secure)/m)
  expect(script).toContain('REQUIRE NONE;')
})

test.each([
  { pod: mysqlPod, version: '5.7.38', port: undefined },
  { pod: mysqlPod, version: '8.0.13', port: undefined },
  { pod: mysqlPod, version: '8.0.29', port: 33_062 },
  { pod: mariadbPod, version: '10.7.4', port: 33_062 },
])('$pod.name $version has the port $port for the administrator', ({ pod, version, port }) => {
  expect(pod.adminPort?.(version)).toBe(port)
  const { 'my.cnf': options = '', 'serve.sh': serve } = pod.files({ ...about, adminPort: port })
  expect(/^(?:extra_port|loose-admin_port)=(\d+)$/m.exec(options)?.[1]).toBe(port?.toString())
  // MySQL serves the port on one address, and that of a pod is unknown before it starts.
  if (pod === mysqlPod) expect(serve?.includes('admin-address="$HOSTNAME"')).toBe(port !== undefined)
})

/** Directories in place of the volumes, and a server program that runs `program`; `$data` is the data directory to create. */
async function stage(pod: typeof mysqlPod, program: string) {
  const directory = await mkdtempDisposable(join(tmpdir(), 'initialise-'))
  const of = (name: string): string => join(directory.path, name)
  const [bin, volume, share, output] = [of('bin'), of('volume'), of('share'), of('output')]
  for (const path of [bin, volume, share, output]) await mkdir(path)
  for (const name of SCRIPTS) await writeFile(join(share, `${name}.sql`), `-- ${name}\n`)
  const text = `#!/bin/sh\nfor option; do case $option in --datadir=*) data=\${option#*=};; esac; done\n${program}\n`
  const install = async (version: string) => {
    const asked = `[ "$1" != --version ] || { echo '${version}'; exit; }`
    for (const name of ['mysqld', 'mariadbd'])
      await writeFile(join(bin, name), text.replace('\n', `\n${asked}\n`), { mode: 0o755 })
  }
  await install('')
  const script = (pod.files(about)['initialise.sh'] ?? '')
    .replaceAll(pod.dataMount, volume)
    .replaceAll('/usr/share/mariadb', share)
    .replaceAll(`${at.admin}/password`, of('password'))
    .replaceAll(at.output, output)
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  return {
    share,
    /** Replaces the server program by one that prints this for `--version`. */
    install,
    run: async (password = 'drawn') => {
      await writeFile(of('password'), password)
      return run('sh', ['-c', script], { env })
    },
    holds: async () => (await readdir(volume, { recursive: true })).toSorted(),
    read: (name: string) => readFile(join(volume, name), 'utf8'),
    adminSql: () => readFile(join(output, 'admin.sql'), 'utf8'),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

test.each([mysqlPod, mariadbPod])('$name: a data directory is created once', async (pod) => {
  await using volume = await stage(pod, 'echo "$@" >>"$data/calls"')
  await volume.run()
  await volume.run()
  expect(await volume.holds()).toEqual(['data', 'data/calls'])
  expect((await volume.read('data/calls')).trim().split('\n')).toHaveLength(1)
})

test.each([mysqlPod, mariadbPod])('$name: an unfinished data directory is replaced', async (pod) => {
  await using volume = await stage(pod, 'echo half >"$data/half"; [ -e "$data.broke" ] || { : >"$data.broke"; exit 1; }')
  await expect(volume.run()).rejects.toThrow()
  expect(await volume.holds()).toEqual(['data.new', 'data.new.broke', 'data.new/half'])
  await volume.run()
  expect(await volume.holds()).toEqual(['data', 'data.new.broke', 'data/half'])
})

test.each([
  {
    pod: mysqlPod,
    made: 'mysqld  Ver 8.0.15 for Linux',
    later: 'mysqld  Ver 8.0.29 for Linux',
    other: 'mysqld  Ver 8.4.0 for Linux',
  },
  {
    ...{ pod: mariadbPod, made: 'mariadbd  Ver 10.7.4-MariaDB for debian', later: 'mariadbd  Ver 10.7.8-MariaDB' },
    other: 'mariadbd  Ver 10.5.29-MariaDB-log',
  },
])('$pod.name: an image of another series is refused, and one of the series is not', async ({ pod, made, later, other }) => {
  await using volume = await stage(pod, ':')
  for (const version of ['', made, later]) {
    await volume.install(version)
    await volume.run()
  }
  await volume.install(other)
  const { stderr } = await volume.run().catch((error: unknown) => error as { stderr: string })
  expect(stderr).toMatch(
    /^REFUSED: its data were made by (MySQL 8\.0\.15|MariaDB 10\.7\.4), and .*: offer \w+ (8\.0|10\.7) again;.*\n$/,
  )
  await volume.install(made)
  await volume.run()
})

test.each(['plain', 'a line\n', `it's "quoted"`, String.raw`$HOME \`id\` \n %s *`])(
  'at every start the admin gets the password of its Secret: %s',
  async (password) => {
    await using volume = await stage(mysqlPod, ':')
    await volume.run('the first')
    await volume.run(password)
    const sql = await volume.adminSql()
    expect(sql).toContain(`AS '${nativeHash(password.trimEnd())}'`)
    expect(sql.split('\n').filter((line) => line !== '' && !line.endsWith(';'))).toEqual([])
  },
)

test('MariaDB reads the statements of its scripts in their order, and drops the root of other hosts', async () => {
  await using volume = await stage(mariadbPod, 'cat >"$data/read"')
  await volume.run()
  const read = await volume.read('data/read')
  expect(read.split('\n').filter((line) => line.startsWith('-- '))).toEqual(SCRIPTS.map((name) => `-- ${name}`))
  expect(read).toMatch(/^CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\n/)
  expect(read).toMatch(/\nDELETE FROM mysql.global_priv WHERE User = 'root';\n$/)
})

test('an image of MariaDB without its scripts does not start, and its log says so', async () => {
  await using volume = await stage(mariadbPod, ':')
  await rm(join(volume.share, 'mysql_sys_schema.sql'))
  await expect(volume.run()).rejects.toThrow('FATAL: this image has no')
  expect(await volume.holds()).toEqual(['data.new'])
})
