import { readdir, readFile } from 'node:fs/promises'

/**
 * The main process of a container, as this machine numbers it: the nodes of a cluster that was started here share its kernel, so a test can
 * kill there what no client of the API server can.
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
    `no process here is of the container ${id}: faults can be made only on a cluster whose nodes are on this machine`,
  )
}

/** A process of the cluster of which a kubeconfig is, by the name of its program: one that is no container's. */
export async function daemon(state: string, program: string): Promise<number> {
  for (const pid of await processes()) {
    const [path = ''] = (await textOf(pid, 'cmdline')).split('\0')
    if (path.endsWith(`/${program}`) && (await textOf(pid, 'environ')).includes(state)) return pid
  }
  throw new Error(`no ${program} of ${state} runs on this machine: it can be taken away only there`)
}

async function processes(): Promise<readonly number[]> {
  return (await readdir('/proc')).map(Number).filter(Number.isInteger)
}

/** A process that has ended meanwhile says nothing. */
async function textOf(pid: number, file: string): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return ''
    throw error
  }
}
