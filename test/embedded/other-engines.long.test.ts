import { execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { mariadbCommand, mongosh } from '../support/families/programs.ts'
import { scratch } from '../support/postgresql/disks.ts'

const README = new URL('../../README.md', import.meta.url)
const run = promisify(execFile)
const cleanup = new AsyncDisposableStack()
let mooring: Mooring
/** Directory with the stock clients under their own names. */
let programs: string
beforeAll(async () => {
  const directory = await mkdtempDisposable(join(await scratch(), 'mooring-'))
  cleanup.use(directory)
  programs = join(directory.path, 'bin')
  await mkdir(programs)
  const clients = { mariadb: await mariadbCommand(), mongosh: await mongosh() }
  for (const [name, command] of Object.entries(clients)) {
    const words = command.map((word) => `'${word}'`).join(' ')
    await writeFile(join(programs, name), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 })
  }
  const dataDir = join(directory.path, '.mooring')
  mooring = cleanup.use(await startMooring({ dataDir, args: ['--compatible-motors'] }))
})
afterAll(() => cleanup.disposeAsync())

test('the unchanged commands of the README connect to MariaDB and MongoDB', async () => {
  const sections = (await readFile(README, 'utf8')).split(/^## /m)
  const blocksOf = (section: string) => {
    const text = sections.find((part) => part.startsWith(`${section}\n`)) ?? ''
    return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  }
  const [first = ''] = blocksOf('A database in CI')
  const [block = ''] = blocksOf('MySQL, MariaDB and MongoDB')
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH ?? ''}` }
  const { stdout } = await run('sh', ['-eu', '-c', `${first}\n${block}`], { cwd: dirname(mooring.dataDir), env })
  expect(stdout).toMatch(/version\(\)\n10\.\d+\.\d+-MariaDB/)
  expect(stdout).toMatch(/^'?[67]\.\d+\.\d+'?$/m)
})
