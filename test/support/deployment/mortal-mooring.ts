import { once } from 'node:events'
import { expect, vi } from 'vitest'
import type { Answer } from '../api/answers.ts'
import { SOON } from '../patience.ts'
import { type Mooring, type MooringOptions, startMooring } from './mooring.ts'
import { createStepTrap } from './step-trap.ts'

/** Embedded Mooring that is killed (SIGKILL) at named steps and started again on the same data directory. */
export interface MortalMooring extends AsyncDisposable {
  readonly dataDir: string
  /** Returns the running Mooring. */
  living(): Mooring
  readonly call: Mooring['call']
  /** Calls `act`, and expects that the process dies at the step. @returns the response, if it arrived before */
  expectKilledAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined>
  /** Kills Mooring (SIGKILL) and waits until it has ended. Its database servers live on. */
  kill(): Promise<void>
  /** Starts a killed Mooring again, and expects that it dies at a step that the start causes. */
  expectKilledAtStart(step: string): Promise<void>
  /** Starts Mooring again. */
  start(): Promise<void>
  /** Runs {@link MortalMooring.expectKilledAt}, then starts Mooring again. @returns the response, if it arrived before */
  dieAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined>
}

/** `args`: arguments of each start. */
export async function startMortal({ args = [] }: Pick<MooringOptions, 'args'> = {}): Promise<MortalMooring> {
  await using started = new AsyncDisposableStack()
  const trap = started.use(await createStepTrap())
  // Disposed of last, since its disposal removes the data directory.
  let living = started.use(await startMooring({ args, ...trap.options }))
  const { dataDir } = living
  const ownership = started.move()

  async function expectKilledAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined> {
    const ended = once(living.process, 'exit')
    await trap.arm({ step })
    const answer = await act().catch(() => undefined)
    expect(await ended).toEqual([null, 'SIGKILL'])
    return answer
  }

  async function start(): Promise<void> {
    living = ownership.use(await startMooring({ dataDir, args, ...trap.options }))
  }

  async function hasEnded({ process }: Mooring): Promise<void> {
    if (process.exitCode === null && process.signalCode === null) await once(process, 'exit')
  }

  return {
    ...{ dataDir, expectKilledAt, start },
    async kill() {
      living.process.kill('SIGKILL')
      await hasEnded(living)
    },
    async expectKilledAtStart(step) {
      await trap.arm({ step })
      // The step may come before Mooring is ready, which fails the start, or after.
      const [started] = await Promise.allSettled([start()])
      await vi.waitUntil(() => trap.isSprung(), SOON)
      if (started.status === 'fulfilled') await hasEnded(living)
    },
    living: () => living,
    call: (...about) => living.call(...about),
    async dieAt(step, act) {
      const answer = await expectKilledAt(step, act)
      await start()
      return answer
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}
