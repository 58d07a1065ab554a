import { channel } from 'node:diagnostics_channel'

const steps = channel('mooring.step')

/**
 * Announces that a named step of a claim, reset, rotation or delete is done (`claim.secret`, `claim.engine` …), on the
 * diagnostics channel `mooring.step` as `{name, key}`. Nobody listens in production; a tracer may, and the fault tests do: they
 * end the process right there, which is how "any step may be the last" is proven.
 */
export function stepDone(name: string, key: string): void {
  if (steps.hasSubscribers) steps.publish({ name, key })
}
