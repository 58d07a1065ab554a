import { execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { RECIPES } from '../../embedded/engines/recipes.ts'
import { runEngines } from '../support/engines-command.ts'
import { LATER, patient } from '../support/patience.ts'

const MOTOR = 'mysql-5.7.38'
const ID = 'mysql-5.7.22'
const recipe = RECIPES.find(({ id }) => id === ID)
if (!recipe) throw new Error(`no recipe of ${ID}`)
const [archive] = recipe.archives

test(
  'an interrupted installation leaves no server, the next one continues, and a damaged archive is downloaded again',
  { timeout: patient(300_000) },
  async () => {
    await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-download-'))
    const cache = at.path
    const downloads = join(cache, '.downloads')
    // As an interrupted download of an earlier version of this program could leave it.
    await mkdir(downloads)
    await writeFile(join(downloads, archive.sha256), 'damaged')
    const killed = new AbortController()
    const first = runEngines(['add', MOTOR], { cache, signal: killed.signal })
    // Maven's directory appears once the download of its archive has begun.
    await expect.poll(() => readdir(downloads), LATER).toContain('maven.state')
    killed.abort()
    expect(await first).toMatchObject({ signal: 'SIGKILL' })
    expect((await readdir(cache)).filter((name) => name.startsWith('mysql'))).toEqual([])

    const second = await runEngines(['add', MOTOR], { cache })
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(second.stdout).toContain('downloaded and verified')
    expect(await readdir(cache)).toEqual([ID])
    const server = join(cache, ID)
    const env = { LD_LIBRARY_PATH: join(server, 'lib') }
    expect((await promisify(execFile)(join(server, 'bin/mysqld'), ['--version'], { env })).stdout).toContain('Ver 5.7.22')
  },
)
