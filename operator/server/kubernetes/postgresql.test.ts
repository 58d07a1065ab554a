import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { postgresqlPod } from './postgresql.ts'

const run = promisify(execFile)
const files = postgresqlPod.files({ admin: "o'admin", capacity: 50 })

test('without TLS nobody logs in, not even from within the pod', () => {
  const records = (files['pg_hba.conf'] ?? '').trimEnd().split('\n')
  expect(records.every((record) => record.startsWith('hostssl ') && record.endsWith(' scram-sha-256'))).toBe(true)
  expect(files['postgresql.conf']).toContain("ssl = 'on'")
})

/** A directory in place of the volume, and an `initdb` of which it is known what it did. */
async function stage(initdb: string) {
  const directory = await mkdtempDisposable(join(tmpdir(), 'initialise-'))
  const [bin, volume] = [join(directory.path, 'bin'), join(directory.path, 'volume')]
  await Promise.all([mkdir(bin), mkdir(volume)])
  await writeFile(join(bin, 'initdb'), `#!/bin/sh\n${initdb}\n`)
  await chmod(join(bin, 'initdb'), 0o755)
  const script = (files['initialise.sh'] ?? '').replaceAll(postgresqlPod.dataMount, volume)
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  return {
    run: () => run('sh', ['-c', script], { env }),
    holds: async () => (await readdir(volume, { recursive: true })).toSorted(),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

/** `$2` is where initdb is told to make the data directory. */
const MAKES = 'mkdir "$2" && echo "$4" >"$2/admin" && echo "$@" >>"$2/calls"'

test('a data directory is made once, and then left alone', async () => {
  await using volume = await stage(MAKES)
  await volume.run()
  expect(await volume.holds()).toEqual(['pgdata', 'pgdata/admin', 'pgdata/calls'])
  await writeFile(join((await volume.run()).stdout, '/dev/null'), '')
  expect(await volume.holds()).toEqual(['pgdata', 'pgdata/admin', 'pgdata/calls'])
})

test('one that was left half-made is made anew', async () => {
  await using volume = await stage(
    `if [ -e "$2".broke ]; then ${MAKES}; else mkdir "$2"; : >"$2".broke; : >"$2/half"; kill $PPID; exit 1; fi`,
  )
  await expect(volume.run()).rejects.toThrow()
  expect(await volume.holds()).toContain('pgdata.new/half')
  await volume.run()
  expect(await volume.holds()).toEqual(['pgdata', 'pgdata.new.broke', 'pgdata/admin', 'pgdata/calls'])
})

test('where the C library does not know C.UTF-8, C does', async () => {
  await using volume = await stage(`case "$*" in *--locale=C.UTF-8*) exit 1;; esac; ${MAKES}`)
  await volume.run()
  expect(await volume.holds()).toContain('pgdata/calls')
})

test('when it fails for good nothing has the name of the data directory', async () => {
  await using volume = await stage('exit 1')
  await expect(volume.run()).rejects.toThrow()
  expect(await volume.holds()).not.toContain('pgdata')
})
