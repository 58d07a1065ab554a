import { z } from 'zod'
import { run } from './run.ts'

/** Command-line clients of one cluster. */
export interface Kubernetes {
  readonly kubeconfig: string
  readonly kubectl: (args: readonly string[], input?: object) => Promise<string>
  readonly helm: (title: string, args: readonly string[], input: object) => Promise<string>
  /** Returns the internal IP address of a node. */
  nodeAddress(): Promise<string>
}

const Nodes = z.object({
  items: z.array(z.object({ status: z.object({ addresses: z.array(z.object({ type: z.string(), address: z.string() })) }) })),
})

/** Runs kubectl and helm from PATH, with a line of progress for long runs. Input is sent as JSON, which is valid YAML. */
export function clientsOf(kubeconfig: string): Kubernetes {
  const env = { KUBECONFIG: kubeconfig }
  const text = (input: object | undefined) => (input === undefined ? {} : { input: JSON.stringify(input) })
  const kubectl: Kubernetes['kubectl'] = (args, input) => run({ file: 'kubectl', args, env, ...text(input) })
  return {
    kubeconfig,
    kubectl,
    helm: (title, args, input) => run({ title, file: 'helm', args, env, ...text(input) }),
    async nodeAddress() {
      const { items } = Nodes.parse(JSON.parse(await kubectl(['get', 'nodes', '--output', 'json'])))
      const found = items.flatMap(({ status }) => status.addresses).find(({ type }) => type === 'InternalIP')
      if (!found) throw new Error('no node of the cluster has an address')
      return found.address
    },
  }
}

/** Checks that programs are in PATH. @throws Error with the names of missing programs */
export async function requireTools(names: readonly string[]): Promise<void> {
  const missing: string[] = []
  for (const name of names) {
    const found = await run({ file: 'sh', args: ['-c', `command -v ${name} || true`] })
    if (found === '') missing.push(name)
  }
  if (missing.length > 0) throw new Error(`the cluster suite needs ${missing.join(', ')} in PATH`)
}
