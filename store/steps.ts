import { channel } from 'node:diagnostics_channel'

const steps = channel('mooring.step')

/**
 * Publishes on the diagnostics channel `mooring.step` that a step of a claim, reset, rotation or deletion is done (`claim.secret`,
 * `claim.engine` …), as `{name, key}`. The channel has no subscriber in production. Fault tests end the process at each step, to prove that
 * any step may be the last before a crash.
 */
export function stepDone(name: string, key: string): void {
  if (steps.hasSubscribers) steps.publish({ name, key })
}
