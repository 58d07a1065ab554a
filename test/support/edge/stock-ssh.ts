import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { knownHostsFile } from '../../../shared/known-hosts.ts'
import { scratch } from '../postgresql/scratch.ts'
import type { Site } from './visitor.ts'

const run = promisify(execFile)

/** User with OpenSSH's client and a key, who knows the host keys in a tunnel's record. */
export interface Person extends AsyncDisposable {
  readonly publicKey: string
  /** Connects a port of this machine to a tunnel, with the key or with a password. The client ends with the user's disposal. */
  forward(to: Site, localPort: number, password?: string): Promise<Client>
}

export interface Client extends AsyncDisposable {
  /** Returns the terminal output so far. */
  readonly said: () => string
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>
}

export async function person(): Promise<Person> {
  const dir = await mkdtemp(join(await scratch(), 'person-'))
  const [key, askpass] = [join(dir, 'key'), join(dir, 'askpass')]
  let clientCount = 0
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'person', '-f', key])
  await writeFile(askpass, '#!/bin/sh\nprintf "%s\\n" "$PASSWORD"\n', { mode: 0o700 })
  const clients = new AsyncDisposableStack()

  async function forward({ hostname, endpoint }: Site, localPort: number, password?: string): Promise<Client> {
    const { sshHost, sshPort, hostKeys } = endpoint
    // A file of its own, since another client may read its file at the same time.
    const knownHosts = join(dir, `known_hosts-${clientCount++}`)
    await writeFile(knownHosts, knownHostsFile(hostKeys, sshHost, sshPort))
    const how = password === undefined ? [`IdentityFile=${key}`, 'BatchMode=yes'] : ['PreferredAuthentications=password']
    const options = [
      ...['IdentitiesOnly=yes', 'IdentityAgent=none', 'StrictHostKeyChecking=yes', 'ExitOnForwardFailure=yes', ...how],
      `UserKnownHostsFile=${knownHosts}`,
    ].flatMap((option) => ['-o', option])
    const to = ['-p', String(sshPort), '-R', `${hostname}:80:127.0.0.1:${localPort}`, `${hostname}@${sshHost}`]
    const child = spawn('ssh', ['-F', 'none', '-N', ...options, ...to], {
      env: { PATH: process.env.PATH, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force', PASSWORD: password },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
    return clients.use({
      said: () => text,
      exited,
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL')
        await exited
      },
    })
  }

  return {
    publicKey: (await readFile(`${key}.pub`, 'utf8')).trim(),
    forward,
    async [Symbol.asyncDispose]() {
      await clients.disposeAsync()
      await rm(dir, { recursive: true })
    },
  }
}
