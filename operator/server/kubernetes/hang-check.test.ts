import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Clock } from '../../../shared/timers.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { pod } from '../../../test/support/operator/kubernetes-objects.ts'
import type { Pod } from '../../kubernetes/kinds.ts'
import type { LoginAttempt } from '../process/programs/program.ts'
import { createHangCheck } from './hang-check.ts'

/** Returns the pod after its container was restarted some times. */
const podAfter = (restartCount: number): Pod =>
  pod({ containerStatuses: [{ name: 'mysql', ready: true, restartCount, state: {}, lastState: {} }] })

const silent: LoginAttempt = { login: 'notYet' }

interface Traits {
  /** Answer of each check's login. */
  readonly answers: readonly LoginAttempt[]
  /** Whether the server's port accepts connections. */
  readonly isOpen?: boolean
  /** Pod at the time of the checks. */
  readonly present?: Pod
}

/** Runs one check for each answer. @returns the requests to the API server */
async function check({ answers, isOpen = true, present = podAfter(0) }: Traits): Promise<readonly unknown[]> {
  const listener = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const port = isOpen ? (listener.address() as AddressInfo).port : await freePort()
  const requests: unknown[] = []
  const stop = new AbortController()
  const left = [...answers]
  let pauses = 0
  const clock: Clock = {
    now: () => 0,
    after(_ms, fire) {
      if (++pauses > answers.length) stop.abort()
      const timer = setImmediate(fire)
      return () => clearImmediate(timer)
    },
  }
  const hangCheck = createHangCheck({
    ...{ clock, logger: pino({ level: 'silent' }), podOf: () => present },
    client: {
      request: ({ method, path }) => {
        requests.push([method, path])
        return Promise.resolve({ status: 200, headers: {}, body: {} })
      },
    },
  })
  hangCheck.watch('pg-1', {
    engine: { logIn: () => Promise.resolve(left.shift() ?? { login: 'accepted' }) },
    pod: podAfter(0),
    target: { host: '127.0.0.1', port, user: 'mooring', password: 'drawn' },
  })
  await hangCheck.run(stop.signal)
  listener.close()
  return requests
}

test.each([
  { what: 'deletes the pod of a server that answers no login', answers: Array<LoginAttempt>(9).fill(silent), deletes: 1 },
  { what: 'waits for six checks', answers: Array<LoginAttempt>(5).fill(silent), deletes: 0 },
  {
    what: 'counts anew after an answer',
    answers: [...Array<LoginAttempt>(5).fill(silent), { login: 'accepted' }, ...Array<LoginAttempt>(5).fill(silent)],
    deletes: 0,
  },
  { what: 'leaves a closed port to the kubelet', answers: Array<LoginAttempt>(9).fill(silent), isOpen: false, deletes: 0 },
  {
    what: 'leaves a server that was restarted meanwhile',
    answers: Array<LoginAttempt>(9).fill(silent),
    present: podAfter(1),
    deletes: 0,
  },
] satisfies readonly (Traits & { what: string; deletes: number })[])('the hang check $what', async ({ deletes, ...traits }) => {
  expect(await check(traits)).toEqual(Array(deletes).fill(['DELETE', expect.stringMatching(/pods\/pg-1-0$/)]))
})
