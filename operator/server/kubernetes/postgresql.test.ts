import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtempDisposable, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { at } from './engine-pod.ts'
import { postgresqlPod } from './postgresql.ts'

const run = promisify(execFile)
const files = postgresqlPod.files({ admin: "o'admin", capacity: 50, tls: true })

test('logins without TLS are rejected, also from within the pod', () => {
  const records = (files['pg_hba.conf'] ?? '').trimEnd().split('\n')
  const admitting = records.filter((record) => !record.endsWith(' reject'))
  expect(admitting.every((record) => record.startsWith('hostssl ') && record.includes(' scram-sha-256'))).toBe(true)
  expect(files['postgresql.conf']).toContain("ssl = 'on'")
})

/** Utilities that docs/images.md requires of an image of PostgreSQL, besides a shell. */
const UTILITIES = ['rm', 'mv', 'cp', 'dd', 'chmod', 'sync', 'mkdir', 'ls', 'wc', 'grep', 'sed', 'readlink', 'dirname']

/** Directory in place of the volume, and an `initdb` that records its calls. */
async function stage(initdb: string) {
  const directory = await mkdtempDisposable(join(tmpdir(), 'initialise-'))
  const [bin, volume] = [join(directory.path, 'bin'), join(directory.path, 'volume')]
  await Promise.all([mkdir(bin), mkdir(volume)])
  const password = join(directory.path, 'password')
  const [told, asked] = [join(directory.path, 'told'), join(directory.path, 'asked')]
  const programs = { initdb, postgres: `echo "$@" >'${asked}'; /bin/cat >'${told}'` }
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`)
    await chmod(join(bin, name), 0o755)
  }
  for (const name of UTILITIES) await symlink((await run('sh', ['-c', `command -v ${name}`])).stdout.trim(), join(bin, name))
  const script = (files['initialise.sh'] ?? '')
    .replaceAll(postgresqlPod.dataMount, volume)
    .replaceAll(`${at.admin}/password`, password)
  const env = { ...process.env, PATH: bin }
  return {
    /** Replaces the server program by one that prints this for `--version`. */
    offer: (version: string) =>
      writeFile(join(bin, 'postgres'), `#!/bin/sh\n[ "$1" != --version ] || { echo '${version}'; exit; }; /bin/cat >'${told}'\n`),
    run: async (secret = 'drawn') => {
      await writeFile(password, secret)
      await rm(told, { force: true })
      return run('/bin/sh', ['-c', script], { env })
    },
    /** Statement and arguments of the server in single-user mode. */
    told: async () => ({ sql: await readFile(told, 'utf8').catch(() => undefined), args: await readFile(asked, 'utf8') }),
    holds: async () => (await readdir(volume, { recursive: true })).toSorted(),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

/** Script of initdb; `$2` is the data directory to create. */
const MAKES = 'mkdir "$2" && echo "$4" >"$2/admin" && echo "$@" >>"$2/calls"'

test('a data directory is created once', async () => {
  await using volume = await stage(MAKES)
  await volume.run()
  expect(await volume.holds()).toEqual(['pgdata', 'pgdata/admin', 'pgdata/calls'])
  await writeFile(join((await volume.run()).stdout, '/dev/null'), '')
  expect(await volume.holds()).toEqual(['pgdata', 'pgdata/admin', 'pgdata/calls'])
})

test('a new data directory has no free space maps and visibility maps', async () => {
  await using volume = await stage(`${MAKES} && mkdir -p "$2/base/1" && cd "$2/base/1" && /bin/touch 1247 1247_fsm 1247_vm`)
  await volume.run()
  expect((await volume.holds()).filter((name) => name.includes('1247'))).toEqual(['pgdata/base/1/1247'])
})

test.each([
  { secret: 'plain', literal: `'plain'` },
  { secret: 'a line\n', literal: `'a line'` },
  { secret: `it's 'quoted'`, literal: `'it''s ''quoted'''` },
  { secret: String.raw`$HOME \`id\` "x" \n %s *`, literal: String.raw`'$HOME \`id\` "x" \n %s *'` },
])('at every later start the admin gets the password of its Secret: $secret', async ({ secret, literal }) => {
  await using volume = await stage(MAKES)
  await volume.run('the first')
  await volume.run(secret)
  const { sql, args } = await volume.told()
  expect(sql).toBe(`ALTER ROLE "o'admin" PASSWORD ${literal}\n`)
  expect(args).toContain('--single')
  expect(args).not.toContain('PASSWORD')
})

test('an image of another major version is refused before it touches the data', async () => {
  await using volume = await stage(`${MAKES} && echo 14 >"$2/PG_VERSION"`)
  await volume.run()
  await volume.offer('postgres (PostgreSQL) 14.12 (Debian 14.12-1)')
  await volume.run()
  await volume.offer('postgres (PostgreSQL) 15.4 (Debian 15.4-1)')
  await expect(volume.run()).rejects.toThrow(
    'REFUSED: its data were made by PostgreSQL 14, and the server offered now is PostgreSQL 15.4, of another series',
  )
})

test('a new data directory has its password from the start', async () => {
  await using volume = await stage(MAKES)
  await volume.run()
  await expect(volume.told()).rejects.toThrow()
})

test('an unfinished data directory is replaced', async () => {
  await using volume = await stage(
    `if [ -e "$2".broke ]; then ${MAKES}; else mkdir "$2"; : >"$2".broke; : >"$2/half"; kill $PPID; exit 1; fi`,
  )
  await expect(volume.run()).rejects.toThrow()
  expect(await volume.holds()).toContain('pgdata.new/half')
  await volume.run()
  expect(await volume.holds()).toEqual(['pgdata', 'pgdata.new.broke', 'pgdata/admin', 'pgdata/calls'])
})

test('the locale is C when the C library does not know C.UTF-8', async () => {
  await using volume = await stage(`case "$*" in *--locale=C.UTF-8*) exit 1;; esac; ${MAKES}`)
  await volume.run()
  expect(await volume.holds()).toContain('pgdata/calls')
})

test('a permanent failure leaves no data directory', async () => {
  await using volume = await stage('exit 1')
  await expect(volume.run()).rejects.toThrow()
  expect(await volume.holds()).not.toContain('pgdata')
})

/** Directory in place of the image, whose `initdb -s` prints the directory of its extensions. */
async function image(controls: Readonly<Record<string, string>>) {
  const directory = await mkdtempDisposable(join(tmpdir(), 'extensions-'))
  const [bin, share, replacement] = ['bin', 'share', 'replacement'].map((name) => join(directory.path, name)) as [
    string,
    string,
    string,
  ]
  const extensions = join(share, 'extension')
  await Promise.all([mkdir(bin), mkdir(replacement), mkdir(extensions, { recursive: true })])
  for (const [name, text] of Object.entries(controls)) await writeFile(join(extensions, name), text)
  await writeFile(join(bin, 'initdb'), `#!/bin/sh\n[ "$1" != -s ] || { echo "share_path=${share}" >&2; exit; }; mkdir "$2"\n`, {
    mode: 0o755,
  })
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  return {
    extensions,
    replacement,
    async initialise(replaced: string) {
      const script = postgresqlPod.files({ admin: 'mooring', capacity: 50, tls: true, outputAt: replaced })['initialise.sh'] ?? ''
      const moved = script.replaceAll(at.output, replacement).replaceAll(postgresqlPod.dataMount, directory.path)
      return run('sh', ['-c', moved], { env })
    },
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

test('the copy of the extension files has no trusted extension', async () => {
  const control = (line: string) => `# citext\ncomment = 'trusted by many'\n${line}relocatable = true\n`
  await using of = await image({
    'citext.control': control('trusted = true\n'),
    'hstore.control': control('  trusted=true # yes\n'),
    'last.control': `relocatable = true\ntrusted = true`,
    'citext--1.6.sql': '-- trusted = true\n',
  })
  await of.initialise(of.extensions)
  for (const name of ['citext.control', 'hstore.control']) {
    expect(await readFile(join(of.replacement, name), 'utf8')).toBe(control(''))
  }
  expect(await readFile(join(of.replacement, 'last.control'), 'utf8')).toBe('relocatable = true\n')
  expect(await readFile(join(of.replacement, 'citext--1.6.sql'), 'utf8')).toBe('-- trusted = true\n')
  expect((await readdir(of.replacement)).toSorted()).toEqual((await readdir(of.extensions)).toSorted())
})

test('an image with its extensions elsewhere does not start, and its log says what to set', async () => {
  await using of = await image({})
  await expect(of.initialise('/usr/share/postgresql/15/extension')).rejects.toThrow(
    `FATAL:  this image has its extensions in ${of.extensions}, not in /usr/share/postgresql/15/extension: set spec.motors[].extensionDirectory`,
  )
})
