import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'

export interface ProgramDeps {
  readonly file: string
  readonly args: readonly string[]
  /** File to which the output of the program is appended. */
  readonly log: string
}

/** Program that can be stopped and started again. */
export interface Program extends AsyncDisposable {
  start(): Promise<Program>
  signal(signal: NodeJS.Signals): void
  /** Sends the signal and resolves when the program has ended. */
  stop(signal: NodeJS.Signals): Promise<void>
}

/** Creates a program without starting it. The program ends with this process, even when this process is killed. */
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
