import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { archiveSettings } from '../../../backup/postgresql/settings.ts'
import { unpackedPackages } from '../../support/debian-packages.ts'

const run = promisify(execFile)
const SEGMENT = '000000010000000000000003'

/** Command that runs a command line, as the image of a server has it. */
type Shell = (line: string) => readonly string[]

const SHELLS: readonly { readonly name: string; readonly shell: () => Promise<Shell> }[] = [
  { name: "Debian's sh and coreutils", shell: () => Promise.resolve((line) => ['/bin/sh', '-c', line]) },
  {
    name: 'BusyBox',
    async shell() {
      const busybox = join((await unpackedPackages('bookworm', ['busybox-static'])).root, 'bin/busybox')
      // Programs of BusyBox alone, as in Alpine.
      const programs = await mkdtempDisposable(join(tmpdir(), 'mooring-busybox-'))
      await run(busybox, ['--install', '-s', programs.path])
      return (line) => ['/usr/bin/env', '-i', `PATH=${programs.path}`, busybox, 'sh', '-c', line]
    },
  },
]

describe.each(SHELLS)('the archive command with $name', ({ shell }) => {
  let words: Shell
  beforeAll(async () => {
    words = await shell()
  })

  interface Data extends AsyncDisposable {
    readonly spool: string
    /** Archives a segment, as PostgreSQL does. @returns whether the command succeeded */
    archive(file: string, content: string): Promise<boolean>
  }

  async function data(spoolName: string, segments: number): Promise<Data> {
    const directory = await mkdtempDisposable(join(tmpdir(), 'mooring-archive-'))
    await mkdir(join(directory.path, 'pg_wal/archive_status'), { recursive: true })
    const command = archiveSettings(spoolName, { segments }).archive_command ?? ''
    return {
      spool: join(directory.path, spoolName),
      async archive(file, content) {
        await writeFile(join(directory.path, 'pg_wal', file), content)
        const line = command.replaceAll(/%[pf%]/g, (found) => ({ '%p': `pg_wal/${file}`, '%f': file })[found] ?? '%')
        const [program = '', ...args] = words(line)
        return run(program, args, { cwd: directory.path }).then(
          () => true,
          () => false,
        )
      },
      [Symbol.asyncDispose]: () => directory.remove(),
    }
  }

  test('copies a whole segment, readable by its user alone, also when it is repeated', async () => {
    await using server = await data(`mooring's "spool" 100%`, 4)
    expect(await server.archive(SEGMENT, 'a segment')).toBe(true)
    expect(await server.archive(SEGMENT, 'a segment')).toBe(true)
    expect(await readdir(server.spool)).toEqual([SEGMENT])
    expect(await readFile(join(server.spool, SEGMENT), 'utf8')).toBe('a segment')
    expect((await stat(join(server.spool, SEGMENT))).mode & 0o777).toBe(0o600)
    expect((await stat(server.spool)).mode & 0o777).toBe(0o700)
  })

  test('drops segments when the spool is full, and leaves a note', async () => {
    await using server = await data('spool', 2)
    for (const name of ['1', '2', '3']) expect(await server.archive(name, name)).toBe(true)
    expect(await readdir(server.spool)).toEqual(['.dropped', '1', '2'])
  })

  test('fails when it cannot copy, and drops the segment when many wait', async () => {
    await using server = await data('spool', 4)
    // Root could write into a directory without permissions: a file in its place stops everyone.
    await writeFile(server.spool, '')
    await chmod(server.spool, 0o600)
    expect(await server.archive(SEGMENT, 'a segment')).toBe(false)
    const waiting = join(server.spool, '../pg_wal/archive_status')
    for (let n = 0; n < 16; n += 1) await writeFile(join(waiting, `${n}.ready`), '')
    expect(await server.archive(SEGMENT, 'a segment')).toBe(true)
  })
})
