import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { z } from 'zod'

const HEARTBEAT_MS = 20_000
const TAIL = 40

export interface Command {
  /** Description such as `building the image` for lines of progress at the start, during the run and at the end. Absent: no progress. */
  readonly title?: string
  readonly file: string
  readonly args: readonly string[]
  readonly env?: NodeJS.Dict<string>
  readonly input?: string
}

/** Writes a line of progress to stderr. */
export function say(line: string): void {
  process.stderr.write(`cluster: ${line}\n`)
}

/**
 * Runs a program to its end, with a line of progress every 20 seconds.
 * @returns its stdout, trimmed
 * @throws Error with the last lines of its output when it fails
 */
export async function run({ title, file, args, env, input }: Command): Promise<string> {
  const started = Date.now()
  const seconds = () => Math.round((Date.now() - started) / 1e3)
  if (title !== undefined) say(`${title} ...`)
  const child = spawn(file, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const output: string[] = []
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    output.push(text)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => output.push(text))
  // A program that does not read its input closes it, which is no failure: the exit code decides.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const heartbeat = setInterval(() => say(`still ${title ?? file} (${seconds()} s)`), HEARTBEAT_MS)
  try {
    await once(child, 'close')
  } finally {
    clearInterval(heartbeat)
  }
  if (child.exitCode !== 0) {
    throw new Error(`${title ?? file} failed (${child.exitCode ?? child.signalCode}):\n${lastLines(output.join(''))}`)
  }
  if (title !== undefined) say(`${title}: done in ${seconds()} s`)
  return stdout.trim()
}

const lastLines = (text: string): string => text.trimEnd().split('\n').slice(-TAIL).join('\n')

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
