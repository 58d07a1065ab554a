import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { createStepTrap, type Trap } from '../../support/deployment/step-trap.ts'
import type { Kubernetes } from '../setup/commands.ts'
import { componentsOf } from './components.ts'
import { patient } from '../../support/patience.ts'

const OPERATOR = fileURLToPath(new URL('../../../operator/main.ts', import.meta.url))
const IN_SYSTEM = ['--namespace', SYSTEM_NAMESPACE]
/** Maximum time until a step is reached. */
const STEP_MS = patient(20_000)

/** Operator of the cluster as a process on this machine instead of pods, so that it can be killed at a named step. */
export interface OwnOperator extends AsyncDisposable {
  /** Kills another process, by id, at a step of the operator. Resolves with the result of `act`. */
  killingAt<T>(trap: Required<Trap>, act: () => Promise<T>): Promise<T>
  /** Kills the operator (SIGKILL) at a step that `act` causes, and starts another. Resolves with the result of `act`. */
  dyingAt<T>(step: string, act: () => Promise<T>): Promise<T>
}

const Deployment = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.tuple([z.object({ env: z.array(z.object({ name: z.string(), value: z.string().optional() })) })]),
      }),
    }),
  }),
})

/** Reads the settings of the release, so that the local operator changes nothing that those in pods created. */
async function settingsOf({ kubectl }: Kubernetes): Promise<NodeJS.Dict<string>> {
  const text = await kubectl(['get', 'deployment', 'mooring-operator', ...IN_SYSTEM, '--output', 'json'])
  const [{ env }] = Deployment.parse(JSON.parse(text)).spec.template.spec.containers
  return Object.fromEntries(env.map(({ name, value }) => [name, value]))
}

/** Stops the operators in pods and starts one on this machine. Disposal starts those in pods again. */
export async function openOwnOperator(clients: Kubernetes): Promise<OwnOperator> {
  await using opened = new AsyncDisposableStack()
  const components = componentsOf(clients)
  const settings = await settingsOf(clients)
  const trap = opened.use(await createStepTrap())
  opened.defer(() => components.scale('operator', 2))
  await components.scale('operator', 0)

  function start(): ChildProcess {
    const args = [...trap.options.node, OPERATOR, '--listen=127.0.0.1', '--metrics-port=auto', '--dial=address']
    const env = { ...process.env, ...settings, ...trap.options.env, KUBECONFIG: clients.kubeconfig, MOORING_LOG_LEVEL: 'error' }
    return spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  }

  let operator = start()
  opened.defer(async () => {
    if (hasEnded(operator)) return
    const ended = once(operator, 'exit')
    operator.kill('SIGTERM')
    await ended
  })
  const all = opened.move()
  return {
    async killingAt(armed, act) {
      await trap.arm(armed)
      const done = await act()
      // `act` may resolve shortly before the trap reports the step.
      await vi.waitUntil(() => trap.isSprung(), { timeout: STEP_MS })
      return done
    },
    async dyingAt(step, act) {
      if (hasEnded(operator)) throw new Error('the operator has ended before it was killed')
      const ended = once(operator, 'exit', { signal: AbortSignal.timeout(STEP_MS) })
      await trap.arm({ step })
      const acting = Promise.allSettled([act()])
      try {
        await ended
      } catch (cause) {
        const [done] = await acting
        throw new Error(`the operator was not killed at ${step}: ${JSON.stringify(done)}`, { cause })
      }
      // Without this deletion the next operator would wait for the lease to expire, which leadership.test.ts covers.
      await clients.kubectl(['delete', 'lease', 'mooring-operator', ...IN_SYSTEM])
      operator = start()
      const [done] = await acting
      if (done.status === 'rejected') throw done.reason
      return done.value
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null
