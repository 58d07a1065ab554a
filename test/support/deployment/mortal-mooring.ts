import { once } from 'node:events'
import { expect } from 'vitest'
import type { Answer } from '../api/answers.ts'
import { type Mooring, startMooring } from './mooring.ts'
import { createStepTrap } from './step-trap.ts'

/** An embedded Mooring that is killed (SIGKILL) at named steps and started again, over one data directory. */
export interface MortalMooring extends AsyncDisposable {
  readonly dataDir: string
  /** The one that is up now. */
  living(): Mooring
  readonly call: Mooring['call']
  /** The whole process dies at that step of what `act` sets going. @returns the answer, when it was out before the end */
  killedAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined>
  /** Starts the next. */
  start(): Promise<void>
  /** {@link killedAt}; the next one is up when this resolves. */
  dieAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined>
}

export async function startMortal(): Promise<MortalMooring> {
  await using started = new AsyncDisposableStack()
  const trap = started.use(await createStepTrap())
  // Its disposal, the last, takes the data directory away.
  let living = started.use(await startMooring(trap.options))
  const { dataDir } = living
  const ownership = started.move()

  async function killedAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined> {
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
    ...{ dataDir, killedAt, start },
    living: () => living,
    call: (...about) => living.call(...about),
    async dieAt(step, act) {
      const answer = await killedAt(step, act)
      await start()
      return answer
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}
