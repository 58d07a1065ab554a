import { spawn } from 'node:child_process'
import { open, readFile, readlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { daemon } from './node-processes.ts'

/** API server of the suite's own Kubernetes, as a process on this machine. */
export interface ApiServer extends AsyncDisposable {
  /** Sends SIGKILL. The API server stays down until `start`, because nothing supervises it. */
  kill(): Promise<void>
  /** Starts the API server with its previous command in the namespaces of its node. Does nothing while it runs. */
  start(): Promise<void>
}

/** Finds the API server of a kubeconfig. @throws Error when it does not run on this machine */
export async function apiServerOf(kubeconfig: string): Promise<ApiServer> {
  const state = dirname(kubeconfig)
  const pid = await daemon(state, 'kube-apiserver')
  const init = (await readFile(join(state, 'init.pid'), 'utf8')).trim()
  const listOf = async (file: string) => (await readFile(`/proc/${pid}/${file}`, 'utf8')).split('\0').slice(0, -1)
  const [command, variables, cwd] = [await listOf('cmdline'), await listOf('environ'), await readlink(`/proc/${pid}/cwd`)]
  let isAway = false

  async function start(): Promise<void> {
    if (!isAway) return
    await using log = await open(join(state, 'logs/kube-apiserver.log'), 'a')
    const inside = [
      '--target',
      init,
      '--mount',
      '--net',
      '--pid',
      '--uts',
      '--ipc',
      `--wdns=${cwd}`,
      '--',
      'env',
      '--ignore-environment',
    ]
    const child = spawn('nsenter', [...inside, ...variables, ...command], { detached: true, stdio: ['ignore', log.fd, log.fd] })
    child.unref()
    isAway = false
  }

  return {
    async kill() {
      process.kill(pid, 'SIGKILL')
      isAway = true
    },
    start,
    [Symbol.asyncDispose]: start,
  }
}
