import { execFile } from 'node:child_process'
import { mkdir, mkdtempDisposable, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { parseSettings } from '../../embedded/settings.ts'
import { running, writeSsh } from '../support/edge/openssh.ts'
import { startLocalServer } from '../support/edge/visitor.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { scratch } from '../support/postgresql/disks.ts'
import { LATER } from '../support/patience.ts'

/** Commands of docs/share.md. Those for a laptop run unchanged; the others as far as possible without a domain, a VM and a cluster. */

const run = promisify(execFile)
const page = await readFile(fileURLToPath(new URL('../../docs/share.md', import.meta.url)), 'utf8')

/** Returns the commands of a section, or of the whole page. */
function blocksOf(section?: string): readonly string[] {
  const text = section === undefined ? page : (page.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? '')
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block)
}

/** Replaces the value of a shell variable in a block. */
function withValue(block: string, name: string, value: string): string {
  const line = new RegExp(`^${name}=\\S+`, 'm')
  expect(block).toMatch(line)
  return block.replace(line, `${name}=${value}`)
}

/** Returns the arguments of `npm start` in a block, as a shell expands them. */
async function argumentsOf(block: string): Promise<readonly string[]> {
  const said = await run('sh', ['-euc', block.replace(/^sudo.*$/m, '').replace('npm start --', "printf '%s\\n'")])
  return said.stdout.trimEnd().split('\n')
}

test('every block is valid for a POSIX shell', async () => {
  for (const block of blocksOf()) await run('sh', ['-nc', block])
})

test('every placeholder of a command is a variable set above the command', () => {
  for (const block of blocksOf()) {
    const set = new Set(['HOME', 'MOORING_CA', 'MOORING_TOKEN', 'MOORING_URL'])
    for (const line of block.split('\n')) {
      for (const [, name = ''] of line.matchAll(/\$\{?([A-Za-z_]+)/g)) expect([...set], line).toContain(name)
      const [, name] = /^([a-z]+)=/.exec(line) ?? []
      if (name !== undefined) set.add(name)
    }
    expect(block).not.toMatch(/<[a-z -]+>/)
  }
})

test.each(['From a laptop', 'From a VM with a domain'])('%s: npm start accepts the settings', async (section) => {
  const [start = ''] = blocksOf(section)
  expect(parseSettings(await argumentsOf(start), {})).toHaveProperty('ok')
})

test('From a laptop: a visitor with an address of the laptop and the CA reaches the local port', async () => {
  const [start = '', connect = '', visit = ''] = blocksOf('From a laptop')
  // Another loopback address stands in for the laptop's address in a network.
  const host = '127.0.0.2'
  await using directory = await mkdtempDisposable(join(await scratch(), 'share-'))
  const args = await argumentsOf(withValue(start, 'host', host))
  await using mooring = await startMooring({ dataDir: join(directory.path, '.mooring'), args })
  await using local = await startLocalServer()
  await mkdir(join(directory.path, '.ssh'), { mode: 0o700 })
  await writeSsh(directory.path, { options: [`IdentityFile=${directory.path}/.ssh/id_ed25519`], localPort: local.port })
  const env = { HOME: directory.path, PATH: `${directory.path}:${process.env.PATH ?? ''}` }
  await using terminal = running(['sh', '-euc', `cd "$HOME"\n${connect}`], env)
  const url = await vi.waitFor(() => /^https:\S+$/m.exec(terminal.said())?.[0] ?? expect.fail(terminal.said()), LATER)
  expect(url).toContain('.tunnel.example.org:')
  const visited = withValue(withValue(withValue(visit, 'url', url), 'host', host), 'ca', mooring.ready.ca)
  const sees = async () => {
    const { stdout } = await run('sh', [
      '-euc',
      visited.replace('curl ', 'curl -sS -o /dev/null -w "%{http_code} %{remote_ip}" '),
    ])
    expect(stdout, terminal.said()).toBe(`200 ${host}`)
  }
  await vi.waitFor(sees, LATER)
})
