import type { DatabaseServer } from '../../../crds/database-server.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { type Motor, MOTORS, partsOf } from '../../../crds/motor.ts'
import { Secret } from '../../../crds/core.ts'
import { Plan } from '../../../crds/plan.ts'
import { ENGINES } from '../../../operator/engines/index.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { adminSecretName } from '../../../operator/server/credentials.ts'
import { serverKeyOf } from '../../../operator/dedicated-database/resources.ts'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { REGION_ID } from '../../builders/resources.ts'
import { credentials, recordOf, runtimeIn, scratch } from './process-runtime.ts'
import { NAMESPACE, startOperator } from './operator.ts'

const PRICE = { amount: '1.00', currency: 'EUR', unit: 'month' }

/** Sizes of the plans in MiB and GiB. */
const PLANS = { small: [256, 1], medium: [512, 2] } as const

/** Changed fields of a spec; null removes a field. */
export type Changes = { readonly [Field in keyof DedicatedDatabase['spec']]?: DedicatedDatabase['spec'][Field] | null }

/** Whole operator over a real store, and database servers as processes. Two plans are there: small and medium. */
export async function startDedicated(motor: Motor) {
  await using opened = new AsyncDisposableStack()
  const at = opened.use(await scratch())
  const runtime = await runtimeIn(at.directory)
  opened.defer(() => runtime.close())
  const target = { host: '127.0.0.1', port: 1, ...credentials }
  const operator = opened.use(await startOperator({ target, runtime, motors: [{ id: motor, warm: false }] }))
  const { store, caches } = operator
  for (const [name, [memoryMiB, storageGiB]] of Object.entries(PLANS)) {
    const spec = { name, cpu: 0.5, memoryMiB, storageGiB, engines: [...MOTORS], price: PRICE }
    await store.create(Plan, { metadata: { name }, spec })
  }
  const kept = opened.move()
  const key = (name: string) => ({ namespace: NAMESPACE, name })

  async function serverOf(database: DedicatedDatabase): Promise<DatabaseServer> {
    const server = caches.servers.get(serverKeyOf(database))
    if (!server) throw new Error('the database has no server')
    return Promise.resolve(server)
  }

  return {
    ...{ store, caches, operator, key },
    create: (name: string, spec: Partial<DedicatedDatabase['spec']> = {}) =>
      store.create(DedicatedDatabase, { metadata: key(name), spec: { region: REGION_ID, motor, plan: 'small', ...spec } }),
    change: (name: string, spec: Changes) => store.mergePatch(DedicatedDatabase, key(name), { spec }),
    /** Waits until a database meets a condition. @returns the database */
    until: (name: string, test: (database: DedicatedDatabase) => boolean) =>
      caches.databases.waitFor(key(name), (now) => (now && test(now) ? now : undefined), AbortSignal.timeout(120_000)),
    gone: (name: string) => caches.databases.waitFor(key(name), (now) => (now ? undefined : true), AbortSignal.timeout(120_000)),
    /** Returns an entry of the credential Secret. */
    async secret(name: string, entry: string): Promise<string> {
      const secret = await store.get(Secret, key(`${name}-credentials`))
      return decodeSecret(secret?.data ?? {}, entry) ?? ''
    },
    /** Logs in with the credentials of the Secret. @throws MooringError `login_refused` */
    async logIn(database: DedicatedDatabase): Promise<void> {
      const { name, namespace = '' } = (await serverOf(database)).metadata
      const own = await store.get(Secret, { namespace, name: adminSecretName(name) })
      const password = decodeSecret(own?.data ?? {}, 'password') ?? ''
      const { host = '', port = 0 } = database.status ?? {}
      const engine = ENGINES.get(partsOf(motor).family)
      if (!engine) throw new Error('no engine of that family')
      await using admin = engine.admin({ host, port, user: credentials.user, password })
      const of = (entry: string) => this.secret(database.metadata.name, entry)
      await admin.verify({ name: await of('username'), password: await of('password') })
    },
    /** Pid of the server's process. */
    async pidOf(database: DedicatedDatabase): Promise<number> {
      const record = await recordOf(serverPaths(at.directory, (await serverOf(database)).metadata.uid))
      return record.process.pid
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Whether the present spec of a database is in force. */
export const isRunning = ({ metadata, status }: DedicatedDatabase): boolean =>
  status?.phase === 'running' && status.observedGeneration === metadata.generation
