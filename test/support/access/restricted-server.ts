import { beforeAll, expect } from 'vitest'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { isLoopback } from '../../../crds/formats/address-list.ts'
import { type Motor, partsOf } from '../../../crds/motor.ts'
import { createCa, issueCertificate, type KeyAlgorithm } from '../../../operator/certificates/local-ca.ts'
import type { EngineAdmin } from '../../../operator/engines/engine.ts'
import { ENGINES } from '../../../operator/engines/index.ts'
import type { ServerRuntime, ServerState } from '../../../operator/server/runtime.ts'
import { credentials, databaseServer, reach, runtimeIn, scratch } from '../operator/process-runtime.ts'
import { openRelay } from './relay.ts'
import { HARMLESS, openTenantSession, type TenantSession } from './tenant-session.ts'

export const TENANT = { name: 'tenant', password: 'password-of-tenant' }
const LIMITS = { connections: 12 }

export type Access = NonNullable<DatabaseServer['spec']['access']>
type Running = Extract<ServerState, { phase: 'running' }>

/** Dedicated server of the process runtime for one `describe`, with a tenant. Use its members within tests only. */
export interface RestrictedServer {
  readonly admin: EngineAdmin
  readonly state: Running
  /** Changes `spec.access`, as the server's reconciler does: returns when it is in force. */
  restrict(access: Partial<Access>): Promise<void>
  /** Opens a session of the tenant from a local address, and runs a first statement in it. */
  from(address: string, tenant?: typeof TENANT): Promise<TenantSession>
  /** Stops the server and starts it again, without the operator's `admit`. */
  restart(): Promise<void>
  /** Statement that any session may run. */
  readonly harmless: string
}

/** Expects that a tenant cannot use the server from a local address. */
export async function expectRefused(server: RestrictedServer, address: string): Promise<void> {
  await expect(server.from(address), `a session from ${address}`).rejects.toThrow()
}

/** Certificates with either key for the loopback addresses. */
async function certificates() {
  const now = new Date()
  const ca = await createCa(now)
  const names = ['127.0.0.1', '::1']
  return async (key: KeyAlgorithm) => ({ ...(await issueCertificate({ ca, names, now, key })), ca: ca.certificate })
}

/** Server, its operator's side, and the sessions of one test file. */
class Bench implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack()
  readonly #motor: Motor
  readonly #listen: string
  #server: DatabaseServer
  #directory = ''
  #runtime: ServerRuntime | undefined
  #open: { readonly admin: EngineAdmin; readonly state: Running } | undefined

  constructor(motor: Motor, listen: string) {
    this.#motor = motor
    this.#listen = listen
    const made = databaseServer(motor)
    this.#server = {
      ...made,
      spec: { ...made.spec, tenancy: 'dedicated', capacity: 1, access: { organization: 'acme', isPrivate: false } },
    }
  }

  get open() {
    if (!this.#open) throw new Error('the server is started before the first test')
    return this.#open
  }

  async start(): Promise<void> {
    this.#directory = this.#stack.use(await scratch()).directory
    await this.bringUp()
    await this.apply()
    await this.open.admin.claim(TENANT, LIMITS, {})
    await this.apply()
  }

  async bringUp(): Promise<void> {
    const publicHost = this.#listen === '::' ? '::1' : this.#listen
    this.#runtime = await runtimeIn(this.#directory, { listen: this.#listen, publicHost, certificate: await certificates() })
    await this.connect()
    await this.open.admin.harden()
  }

  async connect(): Promise<void> {
    if (!this.#runtime) throw new Error('the runtime is not there')
    const state = await reach(this.#runtime, this.#server, 'running')
    const engine = ENGINES.get(partsOf(this.#motor).family)
    if (!engine) throw new Error(`no engine of ${this.#motor}`)
    if (this.#open && JSON.stringify(this.#open.state) === JSON.stringify(state)) return
    await this.#open?.admin[Symbol.asyncDispose]()
    this.#open = { admin: engine.admin({ ...state.admin, ...credentials }), state }
  }

  apply(): Promise<void> {
    const { access } = this.#server.spec
    return this.open.admin.admit(access?.isPrivate ? [] : access?.sources)
  }

  async restrict(access: Partial<Access>): Promise<void> {
    const { spec } = this.#server
    this.#server = { ...this.#server, spec: { ...spec, access: { organization: 'acme', isPrivate: false, ...access } } }
    await this.connect()
    await this.apply()
  }

  async from(address: string, tenant: typeof TENANT): Promise<TenantSession> {
    const host = address.includes(':') ? '::1' : '127.0.0.1'
    const relay = this.#stack.use(await openRelay({ host, port: this.open.state.port, from: address }))
    const { family } = partsOf(this.#motor)
    const login = { ...tenant, port: relay.port, tls: !isLoopback(this.open.state.admin.host) || !isLoopback(this.#listen) }
    const session = await openTenantSession(family, login)
    this.#stack.defer(() => session.end().catch(() => undefined))
    await session.run(HARMLESS[family])
    return session
  }

  async restart(): Promise<void> {
    await this.#open?.admin[Symbol.asyncDispose]()
    this.#open = undefined
    await this.#runtime?.close()
    await this.bringUp()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open?.admin[Symbol.asyncDispose]()
    await this.#runtime?.close()
    await this.#stack.disposeAsync()
  }
}

/** Starts a {@link RestrictedServer} before the tests of a `describe`, at first open to every source, and stops it after them. */
export function restrictedServer(motor: Motor, listen = '127.0.0.1'): RestrictedServer {
  let bench: Bench | undefined
  beforeAll(async () => {
    const made = new Bench(motor, listen)
    bench = made
    await made.start()
    return () => made[Symbol.asyncDispose]()
  })
  const now = (): Bench => {
    if (!bench) throw new Error('the server is started before the first test')
    return bench
  }
  return {
    get admin() {
      return now().open.admin
    },
    get state() {
      return now().open.state
    },
    restrict: (access) => now().restrict(access),
    from: (address, tenant = TENANT) => now().from(address, tenant),
    restart: () => now().restart(),
    harmless: HARMLESS[partsOf(motor).family],
  }
}
