import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const PRELOAD = fileURLToPath(new URL('kill-at-step.ts', import.meta.url))

export const Trap = z.object({
  /** Name of a step, from operator/reporter.ts: `claim.secret`. */
  step: z.string(),
  /** Id of the process to kill; default: the process itself. */
  pid: z.int().min(2).optional(),
})
export type Trap = z.output<typeof Trap>

/** Trap that kills a process at a named step of a Mooring started with `options`. */
export interface StepTrap extends AsyncDisposable {
  readonly options: { readonly node: readonly string[]; readonly env: Record<string, string> }
  /** Arms the trap for the next time that the step is done, once. */
  arm(trap: Trap): Promise<void>
  /** Whether the armed trap has killed the process. */
  isSprung(): Promise<boolean>
}

export async function createStepTrap(): Promise<StepTrap> {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-trap-'))
  const file = join(directory, 'trap')
  return {
    options: { node: ['--import', PRELOAD], env: { STEP_TRAP_FILE: file } },
    async arm(trap) {
      await writeFile(`${file}.new`, JSON.stringify(trap))
      await rename(`${file}.new`, file)
    },
    isSprung: async () => (await readdir(directory)).length === 0,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}
