import { X509Certificate } from 'node:crypto'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createCa, issueCertificate } from '../../certificates/local-ca.ts'
import type { LoginAttempt } from '../process/programs/program.ts'
import { createAnswering, type Serving } from './answering.ts'
import { pod } from '../../../test/support/operator/kubernetes-objects.ts'
import type { EnginePod } from './engine-pod.ts'
import { mongodbPod } from './mongodb.ts'
import { mysqlPod } from './mysql.ts'
import { postgresqlPod } from './postgresql.ts'

const now = new Date()
const certificate = await issueCertificate({ ca: await createCa(now), names: ['pg-1'], now })

interface Traits {
  readonly shown?: string
  /** Whether the server can load a certificate while it runs. */
  readonly reload?: 'works' | 'unknown'
}

/** Pod with given responses to logins, and an API server that records deleted pods. `shown`: certificate of the server. */
function stage({
  shown,
  reload,
  engine = postgresqlPod,
}: Pick<Traits, 'shown' | 'reload'> & { readonly engine?: EnginePod } = {}) {
  const deleted: string[] = []
  const store: Parameters<typeof createAnswering>[0]['store'] = {
    mergePatch: () => (shown ? Promise.resolve() : Promise.reject(new Error('nothing is to be patched'))) as never,
    delete: (_, { name }) => Promise.resolve(void deleted.push(name)),
  }
  const answering = createAnswering({ store, logger: pino({ level: 'silent' }) })
  const ask = (login: LoginAttempt, password = 'drawn') => {
    const serving: Serving = {
      engine: {
        ...engine,
        logIn: (_target, onCertificate) => {
          if (shown) onCertificate(new X509Certificate(shown))
          return Promise.resolve(login)
        },
        reload: () => Promise.resolve(reload === 'works'),
      },
      pod: pod(),
      address: { host: 'pg-1', port: 5432 },
      target: { host: 'pg-1', port: 5432, user: 'mooring', password },
      certificate,
      again: () => undefined,
    }
    return answering(serving)
  }
  return { ask, deleted }
}

const refused = (code: string): LoginAttempt => ({ login: 'refused', code })

test.each([
  { what: 'the password of its Secret', code: '28P01', engine: postgresqlPod },
  { what: 'the password of its Secret (MySQL)', code: 'ER_ACCESS_DENIED_ERROR', engine: mysqlPod },
  { what: 'the password of its Secret (MongoDB)', code: '18', engine: mongodbPod },
  { what: 'a certificate that is trusted', code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', engine: postgresqlPod },
  { what: 'a certificate that is trusted (MySQL)', code: 'HANDSHAKE_SSL_ERROR', engine: mysqlPod },
])('a server without $what is restarted once', async ({ code, engine }) => {
  const { ask, deleted } = stage({ engine })
  expect(await ask(refused(code))).toMatchObject({ phase: 'starting' })
  expect(deleted).toEqual(['pg-1-0'])
  expect(await ask(refused(code))).toMatchObject({ phase: 'failed', reason: 'Crashed' })
  expect(deleted).toHaveLength(1)
})

test('a new password, and the same one after a successful login, cause another restart', async () => {
  const { ask, deleted } = stage()
  await ask(refused('28P01'))
  await ask(refused('28P01'), 'another')
  expect(deleted).toHaveLength(2)
  expect(await ask({ login: 'accepted' }, 'another')).toMatchObject({ phase: 'running' })
  await ask(refused('28P01'), 'another')
  expect(deleted).toHaveLength(3)
})

test('a server that cannot load its new certificate is restarted once, and serves meanwhile', async () => {
  const former = await issueCertificate({ ca: await createCa(now), names: ['pg-1'], now })
  const { ask, deleted } = stage({ shown: former.certificate, reload: 'unknown' })
  expect(await ask({ login: 'accepted' })).toMatchObject({ phase: 'starting' })
  expect(deleted).toEqual(['pg-1-0'])
  expect(await ask({ login: 'accepted' })).toMatchObject({ phase: 'running' })
  expect(deleted).toHaveLength(1)
})

test('a server that loads its new certificate is not restarted', async () => {
  const former = await issueCertificate({ ca: await createCa(now), names: ['pg-1'], now })
  const { ask, deleted } = stage({ shown: former.certificate, reload: 'works' })
  expect(await ask({ login: 'accepted' })).toMatchObject({ phase: 'running' })
  expect(deleted).toEqual([])
})

test('a rejection that no restart can resolve is reported', async () => {
  const { ask, deleted } = stage()
  expect(await ask(refused('28000'))).toMatchObject({ phase: 'failed', message: expect.stringContaining('28000') as string })
  expect(deleted).toEqual([])
})
