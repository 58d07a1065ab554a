import { execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createReadyFile } from '../../embedded/publish.ts'

const MAIN = join(import.meta.dirname, '../../embedded/main.ts')
const temporary = () => mkdtempDisposable(join(tmpdir(), 'ready-file-'))

test.each<{ does: string; pathIn: (directory: string) => Promise<string> }>([
  {
    does: 'a directory',
    async pathIn(directory) {
      await mkdir(join(directory, 'ready'))
      return join(directory, 'ready')
    },
  },
  {
    does: 'a path below a file',
    async pathIn(directory) {
      await writeFile(join(directory, 'file'), '')
      return join(directory, 'file', 'ready.json')
    },
  },
  { does: 'a path where nothing can be made', pathIn: async () => '/proc/nope/ready.json' },
  {
    does: 'what is no file, such as a pipe',
    async pathIn(directory) {
      await promisify(execFile)('mkfifo', [join(directory, 'pipe')])
      return join(directory, 'pipe')
    },
  },
])('$does is rejected at the start, with a message that names the setting', async ({ pathIn }) => {
  await using directory = await temporary()
  const path = await pathIn(directory.path)
  const message = new RegExp(`^--ready-file must be a file that can be written, not "${path}": .*\\.$`)
  await expect(createReadyFile(path)).rejects.toMatchObject({
    code: 'ready_file_unusable',
    message: expect.stringMatching(message) as string,
  })
})

test('a valid ready file does not exist before it is written', async () => {
  await using directory = await temporary()
  await writeFile(join(directory.path, 'ready.json'), 'of an earlier run')
  await createReadyFile(join(directory.path, 'ready.json'))
  expect(await readdir(directory.path)).toEqual([])
})

test('Mooring exits with 2 for an unusable ready file, as for any invalid setting', async () => {
  await using directory = await temporary()
  const args = [MAIN, '--data-dir', join(directory.path, 'data'), '--ready-file', directory.path]
  const ended = promisify(execFile)(process.execPath, args)
  await expect(ended).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^mooring: --ready-file must be .*\n$/) as string,
  })
})
