import { lstat, mkdir, mkdtempDisposable, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { RECIPES } from './recipes.ts'
import { arrange } from './unpack.ts'

const recipe = RECIPES.find(({ id }) => id === 'mariadb-10.11.19')

const FILES = {
  'usr/sbin/mariadbd': 'program',
  'usr/share/mysql/charsets/Index.xml': 'charsets',
  'usr/lib/mysql/plugin/disks.so': 'plugin',
  'usr/share/doc/copyright': 'left out',
  'lib/x86_64-linux-gnu/libaio.so.1.0.1': 'libaio',
  'usr/lib/x86_64-linux-gnu/librtmp.so.1': 'librtmp',
  'usr/lib/x86_64-linux-gnu/engines/padlock.so': 'left out',
}

test('an installation has the files of its recipe, its libraries by the names of their links, and open modes', async () => {
  if (!recipe) throw new Error('no recipe')
  await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-unpack-'))
  const [raw, installation] = [join(at.path, 'raw'), join(at.path, 'installation')]
  for (const [name, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(raw, name)), { recursive: true })
    await writeFile(join(raw, name), content, { mode: 0o600 })
  }
  await symlink('libaio.so.1.0.1', join(raw, 'lib/x86_64-linux-gnu/libaio.so.1'))
  await mkdir(installation, { mode: 0o700 })

  await arrange(recipe, raw, installation)

  const entries = await readdir(installation, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => !entry.isDirectory())
  const modes = new Map<string, string>()
  for (const { parentPath, name } of files) {
    const path = join(parentPath, name)
    const found = await lstat(path)
    expect(found.isFile()).toBe(true)
    modes.set(path.slice(installation.length + 1), (found.mode & 0o777).toString(8))
  }
  expect(Object.fromEntries(modes)).toEqual({
    'bin/mariadbd': '755',
    'share/charsets/Index.xml': '644',
    'plugin/disks.so': '644',
    'lib/libaio.so.1': '644',
    'lib/librtmp.so.1': '644',
  })
  expect(await readFile(join(installation, 'lib/libaio.so.1'), 'utf8')).toBe('libaio')
  for (const name of ['.', 'bin', 'share/charsets']) expect((await lstat(join(installation, name))).mode & 0o777).toBe(0o755)
})
