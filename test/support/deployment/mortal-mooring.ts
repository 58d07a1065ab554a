import { once } from 'node:events'
import { expect } from 'vitest'
import type { Answer } from '../api/answers.ts'
import { type Mooring, startMooring } from './mooring.ts'
import { createStepTrap } from './step-trap.ts'

/** Embedded Mooring that is killed (SIGKILL) at named steps and started again on the same data directory. */
export interface MortalMooring extends AsyncDisposable {
  readonly dataDir: string
  /** Returns the running Mooring. */
  living(): Mooring
  readonly call: Mooring['call']
  /** Calls `act`, and expects that the process dies at the step. @returns the response, if it arrived before */
  expectKilledAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined>
  /** Starts Mooring again. */
  start(): Promise<void>
  /** Runs {@link MortalMooring.expectKilledAt}, then starts Mooring again. @returns the response, if it arrived before */
  dieAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined>
}

export async function startMortal(): Promise<MortalMooring> {
  await using started = new AsyncDisposableStack()
  const trap = started.use(await createStepTrap())
  // Disposed of last, since its disposal removes the data directory.
  let living = started.use(await startMooring(trap.options))
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
    living = ownership.use(await startMooring({ dataDir, ...trap.options }))
  }

  return {
    ...{ dataDir, expectKilledAt, start },
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
