import { readdir, readFile } from 'node:fs/promises'

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
