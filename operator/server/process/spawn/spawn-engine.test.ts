import { mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { at } from '../programs/program.ts'
import type { Launcher } from '../confinement/launchers.ts'
import { spawnEngine } from './spawn-engine.ts'

const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
/** Launcher that prints its own environment, then runs the command. */
const launcher: Launcher = { file: '/bin/sh', args: ['-c', '/usr/bin/env; exec "$@"', 'launcher'], env: { KIND: 'test' } }

/** Creates an installation and returns what its program prints: its argument, then its environment. */
async function outputOf({ libraries, launched }: { libraries: boolean; launched: boolean }) {
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-spawn-'))
  const installation = join(scratch.path, 'engine')
  await mkdir(join(installation, libraries ? 'lib' : 'share'), { recursive: true })
  await writeFile(join(installation, 'server'), '#!/bin/sh\necho "share=$1"\n/usr/bin/env\n', { mode: 0o755 })
  const output = join(scratch.path, 'output')
  const { exited } = await spawnEngine({
    ...{ installation, user, output, inherit: [] },
    command: { file: 'server', args: [`${at.installation}/share`] },
    launcher: launched ? launcher : undefined,
  })
  expect(await exited).toBe(0)
  const lines = (await readFile(output, 'utf8')).replaceAll(installation, '/engine').trim().split('\n')
  return lines.filter((line) => !/^(PWD|_|OLDPWD|SHLVL)=/.test(line))
}

test('an engine finds its libraries and its share directory', async () => {
  expect(await outputOf({ libraries: true, launched: false })).toEqual(['share=/engine/share', 'LD_LIBRARY_PATH=/engine/lib'])
})

test('an engine without libraries has an empty environment', async () => {
  expect(await outputOf({ libraries: false, launched: false })).toEqual(['share=/engine/share'])
})

test('the libraries are those of the engine alone, not of its launcher', async () => {
  expect(await outputOf({ libraries: true, launched: true })).toEqual([
    'KIND=test',
    'share=/engine/share',
    'LD_LIBRARY_PATH=/engine/lib',
    'KIND=test',
  ])
})
