import { inject } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Motors that a project of vitest.config.ts tests whole; the others have `test/behaviour/families/smoke.test.ts`. */
    readonly motors: readonly Motor[]
  }
}

/** Returns the motors that the running project tests whole. */
export const motorsUnderTest = (): readonly Motor[] => inject('motors')

/** Returns those of `all` whose motor the running project tests whole. */
export const underTest = <T extends { readonly motor: Motor }>(all: readonly T[]): readonly T[] =>
  all.filter(({ motor }) => motorsUnderTest().includes(motor))
