import { spawn } from 'node:child_process'
import { once } from 'node:events'

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
