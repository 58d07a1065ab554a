import { readdir, readFile, open, readlink } from 'node:fs/promises'
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'

/**
 * Returns the process id, on this machine, of a container's main process. The nodes of a local cluster share the machine's kernel, so a test can
 * kill processes that no client of the API server could kill.
 * @param containerId as in a pod's status, `containerd://…`
 * @throws Error when the containers run on other machines
 */
export async function mainProcess(containerId: string): Promise<number> {
  const id = containerId.slice(containerId.indexOf('://') + 3)
  for (const pid of await processes()) {
    if (!(await textOf(pid, 'cgroup')).includes(id)) continue
    if (/^NSpid:.*\t1$/m.test(await textOf(pid, 'status'))) return pid
  }
  throw new Error(
    `no process of container ${id} runs on this machine: fault tests need a cluster whose nodes run on this machine`,
  )
}

/** Returns the process id of a cluster's program that runs outside of containers. @param state directory of the cluster's kubeconfig */
export async function daemon(state: string, program: string): Promise<number> {
  for (const pid of await processes()) {
    const [path = ''] = (await textOf(pid, 'cmdline')).split('\0')
    if (path.endsWith(`/${program}`) && (await textOf(pid, 'environ')).includes(state)) return pid
  }
  throw new Error(`no ${program} of ${state} runs on this machine: fault tests need a cluster on this machine`)
}

async function processes(): Promise<readonly number[]> {
  return (await readdir('/proc')).map(Number).filter(Number.isInteger)
}

/** Reads a file of a process in /proc. Returns an empty string when the process has ended. */
async function textOf(pid: number, file: string): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return ''
    throw error
  }
}

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
