/**
 * Runs steps one after the other, whether those before succeeded or not. @throws what the one that failed has thrown, or an AggregateError of
 * what they have, when all were run
 */
export async function runAll(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} of ${steps.length} steps failed`)
}
