import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { unpackedPackages } from '../../support/debian-packages.ts'

const LOOK_MS = 20
const PATIENCE_MS = 10_000
/** Directories of system programs; Debian has moved programs from one to the other. */
const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu']

/** Program: installed, or unpacked once from its packages. */
export interface Program {
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

/** Finds a program. @throws Error when it is neither installed nor available as a package */
export async function program(name: string, packages: readonly string[]): Promise<Program> {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  for (const folder of folders) {
    const path = join(folder, name)
    if (await exists(path)) return { path, env: {} }
  }
  const { root } = await unpackedPackages(await codename(), packages)
  const inside = ['usr/sbin', 'usr/bin'].map((folder) => join(root, folder, name))
  const found = (await exists(inside[0] ?? '')) ? inside[0] : inside[1]
  return { path: found ?? '', env: { LD_LIBRARY_PATH: LIBRARIES.map((folder) => join(root, folder)).join(delimiter) } }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

async function codename(): Promise<string> {
  const [, name = ''] = /^VERSION_CODENAME=(.*)$/m.exec(await readFile('/etc/os-release', 'utf8')) ?? []
  return name
}

/** Process of a measure, ended with it. */
export interface Child extends AsyncDisposable {
  readonly pid: number
  readonly said: () => string
}

interface Options {
  readonly env?: Readonly<Record<string, string>>
  /** Id of the user that it runs as. */
  readonly uid?: number
}

export function child([path = '', ...args]: readonly string[], { env = {}, uid }: Options = {}): Child {
  const started: ChildProcess = spawn(path, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid !== undefined && { uid, gid: uid }),
  })
  let said = ''
  for (const stream of [started.stdout, started.stderr]) stream?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = once(started, 'exit')
  return {
    pid: started.pid ?? 0,
    said: () => said,
    async [Symbol.asyncDispose]() {
      if (started.exitCode === null && started.signalCode === null) started.kill('SIGTERM')
      await ended
    },
  }
}

/** Resolves when the port accepts connections. @throws Error after ten seconds, with the output of the process */
export async function listening(port: number, { said }: Pick<Child, 'said'>): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (!(await taken(port))) {
    if (performance.now() > end) throw new Error(`nothing listens on port ${port}: ${said()}`)
    await delay(LOOK_MS)
  }
}

function taken(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).then((is) => {
    socket.destroy()
    return is === true
  })
}
