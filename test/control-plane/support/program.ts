import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'

export interface ProgramDeps {
  readonly file: string
  readonly args: readonly string[]
  /** File that its output is appended to. */
  readonly log: string
}

/** A program that can be ended and started again. */
export interface Program extends AsyncDisposable {
  start(): Promise<Program>
  signal(signal: NodeJS.Signals): void
  /** Ends it, and resolves when it has ended. */
  stop(signal: NodeJS.Signals): Promise<void>
}

/** Not started yet. It ends with this process, even when that is killed. */
export function program({ file, args, log }: ProgramDeps): Program {
  let child: ChildProcess | undefined

  async function stop(signal: NodeJS.Signals): Promise<void> {
    const running = child
    if (running?.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill(signal)
    await ended
  }

  const self: Program = {
    async start() {
      const output = await open(log, 'a')
      child = spawn('setpriv', ['--pdeathsig', 'KILL', file, ...args], { stdio: ['ignore', output.fd, output.fd] })
      await once(child, 'spawn')
      await output.close()
      return self
    },
    signal(signal) {
      child?.kill(signal)
    },
    stop,
    [Symbol.asyncDispose]: () => stop('SIGKILL'),
  }
  return self
}
