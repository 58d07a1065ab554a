import pg from 'pg'
import { MooringError } from '../../crds/errors.ts'
import type { AdminTarget, EngineAdmin, Tenant } from './engine.ts'
import { EngineCode } from './engine.ts'
import type { Timeouts } from './postgresql-connection.ts'
import { SqlState, sqlStateOf } from './postgresql-errors.ts'
import type { Scram } from './postgresql-scram.ts'

/** Role, password, database or right to connect is not there; or the database is closed. */
const REFUSED: readonly unknown[] = [
  SqlState.invalidPassword,
  SqlState.invalidAuthorization,
  SqlState.undefinedDatabase,
  SqlState.insufficientPrivilege,
  SqlState.notInPrerequisiteState,
]

/** The part of the driver's Connection (the wire protocol over TCP or TLS) that its types leave out. */
interface Wire extends pg.Connection {
  connect(port: number, host: string): void
  requestSsl(): void
  startup(parameters: Readonly<Record<string, string>>): void
  sendSASLInitialResponseMessage(mechanism: string, message: string): void
  sendSCRAMClientFinalMessage(message: string): void
}

interface VerifyDeps {
  readonly target: AdminTarget
  readonly timeouts: Timeouts
  readonly scram: Scram
}

/** Logs in as a tenant does, by the address of the server, and runs a statement. */
export function verifying(deps: VerifyDeps): EngineAdmin['verify'] {
  return async function verify(tenant) {
    try {
      await logIn(deps, tenant)
    } catch (error) {
      if (!REFUSED.includes(sqlStateOf(error))) throw error
      throw new MooringError(EngineCode.loginRefused, `the login of ${tenant.name} does not work`, { cause: error })
    }
  }
}

/**
 * The driver's own client derives the password's key anew at each login, which takes as long as all the rest. This one speaks the same
 * protocol through the same driver, but lets {@link Scram} remember (PostgreSQL documentation, "Message Flow").
 */
async function logIn({ target, timeouts, scram }: VerifyDeps, { name, password }: Tenant): Promise<void> {
  const { host, port, ca } = target
  const wire = new pg.Connection({ ssl: ca === undefined ? false : { ca } }) as Wire
  const exchange = scram.exchange(password)
  const done = Promise.withResolvers<undefined>()
  const fail = (error: unknown) => done.reject(error)
  const timer = setTimeout(() => fail(new Error('the server does not answer')), timeouts.connectMs)
  let proven = false
  let asked = false

  const startup = () => wire.startup({ user: name, database: name, client_encoding: 'UTF8', application_name: 'mooring' })
  const step = (event: string, act: (message: { data: string; mechanisms: string[] }) => unknown) =>
    wire.on(event, (message: { data: string; mechanisms: string[] }) => {
      Promise.try(act, message).catch(fail)
    })
  const unexpected = () => {
    throw new MooringError(EngineCode.failed, 'the server asks for a password in another way than SCRAM')
  }
  step('connect', () => (ca === undefined ? startup() : wire.requestSsl()))
  step('sslconnect', startup)
  step('authenticationSASL', () => wire.sendSASLInitialResponseMessage(exchange.mechanism, exchange.first))
  step('authenticationSASLContinue', async ({ data }) => wire.sendSCRAMClientFinalMessage(await exchange.answer(data)))
  step('authenticationSASLFinal', ({ data }) => {
    exchange.check(data)
    proven = true
  })
  step('authenticationCleartextPassword', unexpected)
  step('authenticationMD5Password', unexpected)
  step('readyForQuery', () => {
    if (!proven) throw new MooringError(EngineCode.failed, 'the server lets tenants in without their password')
    if (asked) done.resolve(undefined)
    else wire.query('SELECT 1')
    asked = true
  })
  wire.on('errorMessage', fail)
  wire.on('error', fail)
  wire.on('end', () => fail(new Error('the server ended the connection')))
  wire.connect(port, host)
  try {
    await done.promise
    // Nobody waits for the goodbye: it takes a sixth of the time.
    wire.end()
  } catch (error) {
    wire.stream.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}
