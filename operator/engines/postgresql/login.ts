import pg from 'pg'
import { MooringError } from '../../../shared/errors.ts'
import { createConnectionsAhead } from '../connections-ahead.ts'
import { type AdminTarget, type EngineAdmin, type Tenant, EngineCode } from '../engine.ts'
import type { Timeouts } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import type { Scram } from '../scram.ts'

/** Errors of a login that cannot succeed: wrong role, password, database or privilege, or a database that rejects connections or is marked (closing.ts). */
const REJECTED: readonly unknown[] = [
  SqlState.invalidPassword,
  SqlState.invalidAuthorization,
  SqlState.undefinedDatabase,
  SqlState.insufficientPrivilege,
  SqlState.notInPrerequisiteState,
  SqlState.undefinedFile,
]

/**
 * Options of the login (PostgreSQL documentation, "libpq: options"). A tenant may set any library name for its role or database, and the
 * server ends a login whose library it lacks. It ignores invalid values of all other settings that a tenant may make.
 */
const OPTIONS = '-c local_preload_libraries='

interface VerifyDeps {
  readonly target: AdminTarget
  readonly timeouts: Timeouts
  readonly scram: Scram
}

/** Check of tenants' logins. Disposing closes connections that were opened in advance. */
interface Verifier extends Disposable {
  /** Connects in advance for an imminent `verify` of the tenant: the server's fork of a process takes as long as the login. */
  readonly expect: (name: string) => void
  readonly verify: EngineAdmin['verify']
}

/** Creates a verifier that logs in as a tenant does, over the server's address. */
export function createVerifier({ target, timeouts, scram }: VerifyDeps): Verifier {
  const ahead = createConnectionsAhead(() => dial(target, timeouts.connectMs))

  async function verify(tenant: Tenant): Promise<void> {
    try {
      await logIn(ahead.take(tenant.name), scram, tenant)
    } catch (error) {
      if (!REJECTED.includes(sqlStateOf(error))) throw error
      throw new MooringError(EngineCode.loginRefused, `the login of ${tenant.name} does not work`, { cause: error })
    }
  }

  return {
    expect: ahead.expect,
    verify,
    [Symbol.dispose]: () => ahead[Symbol.dispose](),
  }
}

/**
 * Logs in as the tenant and disconnects (PostgreSQL documentation, "Message Flow"). The login has succeeded when the server is ready for
 * queries. The driver's own client would derive the password's key at each login, which takes as long as everything else; {@link Scram}
 * caches the key.
 */
async function logIn(wire: Wire, scram: Scram, { name, password }: Tenant): Promise<void> {
  const exchange = scram.exchange(password)
  const server = { isProven: false }
  const unexpected = () => {
    throw new MooringError(EngineCode.failed, 'the server asks for a password in another way than SCRAM')
  }
  try {
    await wire.dialled
    await wire.converse(
      { user: name, database: name, client_encoding: 'UTF8', application_name: 'mooring', options: OPTIONS },
      {
        authenticationSASL: () => wire.send.sendSASLInitialResponseMessage(exchange.mechanism, exchange.first),
        authenticationSASLContinue: async ({ data }) => wire.send.sendSCRAMClientFinalMessage(await exchange.answer(data)),
        authenticationSASLFinal: ({ data }) => {
          exchange.check(data)
          server.isProven = true
        },
        authenticationCleartextPassword: unexpected,
        authenticationMD5Password: unexpected,
      },
    )
    if (!server.isProven) throw new MooringError(EngineCode.failed, 'the server lets tenants in without their password')
  } finally {
    wire.close()
  }
}

interface Message {
  readonly data: string
}

/** Members of the driver's Connection (the wire protocol over TCP or TLS) that its types omit. */
interface Driver extends pg.Connection {
  connect(port: number, host: string): void
  requestSsl(): void
  startup(parameters: Readonly<Record<string, string>>): void
  sendSASLInitialResponseMessage(mechanism: string, message: string): void
  sendSCRAMClientFinalMessage(message: string): void
}

/** Connection to a server for a login message by message (PostgreSQL documentation, "Message Flow"). */
interface Wire {
  /**
   * Resolves when the connection is ready for the login: after the TLS handshake, when the target has a CA.
   * @throws errors of the driver; an Error on timeout
   */
  readonly dialled: Promise<undefined>
  readonly send: Pick<Driver, 'sendSASLInitialResponseMessage' | 'sendSCRAMClientFinalMessage'>
  /**
   * Requests a session with `parameters` and answers the server's messages with `steps`, until the server is ready for queries.
   * @throws errors of the server or of a step; an Error when the connection ends or on timeout
   */
  converse(parameters: Readonly<Record<string, string>>, steps: Readonly<Record<string, Step>>): Promise<undefined>
  /** Resolves when the connection has ended. Never rejects. */
  readonly ended: Promise<undefined>
  close(): void
}

type Step = (message: Message) => unknown

/** Connects to a server. Closes the connection after `timeoutMs`, which bounds the whole login. */
function dial({ host, port, ca }: AdminTarget, timeoutMs: number): Wire {
  const driver = new pg.Connection({ ssl: ca === undefined ? false : { ca } }) as Driver
  const dialled = Promise.withResolvers<undefined>()
  const ready = Promise.withResolvers<undefined>()
  const ended = Promise.withResolvers<undefined>()
  // A failure rejects both promises, but the caller may await only one of them.
  for (const { promise } of [dialled, ready]) promise.catch(() => undefined)

  function settle(error: unknown): void {
    dialled.reject(error)
    ready.reject(error)
    clearTimeout(timer)
    ended.resolve(undefined)
  }

  function fail(error: unknown): void {
    settle(error)
    driver.stream.destroy()
  }

  const timer = setTimeout(() => fail(new Error('the server does not answer')), timeoutMs)
  driver.on('connect', () => (ca === undefined ? dialled.resolve(undefined) : driver.requestSsl()))
  driver.on('sslconnect', () => dialled.resolve(undefined))
  driver.on('readyForQuery', () => ready.resolve(undefined))
  driver.on('errorMessage', fail)
  driver.on('error', fail)
  driver.on('end', () => fail(new Error('the server ended the connection')))
  driver.connect(port, host)

  return {
    dialled: dialled.promise,
    send: driver,
    ended: ended.promise,
    converse(parameters, steps) {
      for (const [event, act] of Object.entries(steps)) {
        driver.on(event, (message: Message) => {
          Promise.try(act, message).catch(fail)
        })
      }
      driver.startup(parameters)
      return ready.promise
    },
    close() {
      // Does not wait for the server to close, which takes a sixth of the time of a login.
      driver.end()
      settle(CLOSED)
    },
  }
}

const CLOSED = new Error('the connection is closed')
