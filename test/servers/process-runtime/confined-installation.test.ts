import { chmod, chown, mkdir, mkdtempDisposable, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { landlockLauncher, namespaceLauncher } from '../../../operator/server/process/confinement/launchers.ts'
import { openDirectory, spawnEngine } from '../../../operator/server/process/spawn/spawn-engine.ts'

const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: 65_534, gid: 65_534 } : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

/** Program of the machine: prints what it finds beside it, and whether it finds what no one shows to it. */
const PROGRAM = `#!/bin/sh
echo "libraries: $LD_LIBRARY_PATH"
read -r line <"$1/share/messages" && echo "share: $line"
read -r line <"$2" && echo "secret: $line"
echo done
`

test.each([
  { kind: 'namespaces', launcher: namespaceLauncher },
  { kind: 'landlock', launcher: (_root: string, installation: string) => landlockLauncher(installation) },
])('a server confined by $kind sees the files that its installation links to, and no other', async ({ launcher }) => {
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-confined-'))
  const at = (name: string) => join(scratch.path, name)
  await chmod(scratch.path, 0o755)
  for (const name of ['own/bin', 'own/share', 'engine/bin', 'engine/lib', 'engine/shown'])
    await mkdir(at(name), { recursive: true })
  for (const name of ['view', 'data', 'config', 'log']) {
    await mkdir(at(name))
    await chown(at(name), user.uid, user.gid)
  }
  await writeFile(at('own/bin/server'), PROGRAM, { mode: 0o755 })
  await writeFile(at('own/share/messages'), 'hello\n')
  await writeFile(at('own/secret'), 'hidden\n', { mode: 0o644 })
  await symlink(at('own/bin/server'), at('engine/bin/server'))
  await symlink(at('own/share'), at('engine/share'))
  for (const [index, name] of ['own/bin/server', 'own/share'].entries()) await symlink(at(name), at(`engine/shown/${index}`))

  await using data = await openDirectory(at('data'))
  await using config = await openDirectory(at('config'))
  await using log = await openDirectory(at('log'))
  const { exited } = await spawnEngine({
    ...{ installation: at('engine'), user, inherit: [data, config, log], output: at('output') },
    command: { file: 'bin/server', args: [at('engine'), at('own/secret')] },
    launcher: launcher(at('view'), at('engine')),
  })
  const status = await exited
  const lines = (await readFile(at('output'), 'utf8')).trim().split('\n')
  expect({ status, lines }).toEqual({
    status: 0,
    lines: [`libraries: ${at('engine/lib')}`, 'share: hello', expect.stringMatching(/own\/secret/) as string, 'done'],
  })
})
