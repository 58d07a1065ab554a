import { MooringError } from '../../../shared/errors.ts'
import type { AdminTarget, EngineAdmin, Tenant } from '../engine.ts'
import { EngineCode } from '../engine.ts'
import type { Timeouts } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import type { Scram } from './scram.ts'
import { dial, type Wire } from './wire.ts'

/** Errors of a login that cannot succeed: wrong role, password, database or privilege, or a database that rejects connections. */
const REJECTED: readonly unknown[] = [
  SqlState.invalidPassword,
  SqlState.invalidAuthorization,
  SqlState.undefinedDatabase,
  SqlState.insufficientPrivilege,
  SqlState.notInPrerequisiteState,
]

interface VerifyDeps {
  readonly target: AdminTarget
  readonly timeouts: Timeouts
  readonly scram: Scram
}

/** Check of tenants' logins. Disposing closes connections that were opened in advance. */
export interface Verifier extends Disposable {
  /** Connects in advance for an imminent `verify` of the tenant: the server's fork of a process takes as long as the login. */
  readonly expect: (name: string) => void
  readonly verify: EngineAdmin['verify']
}

/** Creates a verifier that logs in as a tenant does, over the server's address. */
export function createVerifier(deps: VerifyDeps): Verifier {
  const expected = new Map<string, Wire>()

  function expect(name: string): void {
    if (expected.has(name)) return
    const wire = dial(deps.target, deps.timeouts.connectMs)
    expected.set(name, wire)
    // The connection may have ended unused, by its timeout or an error.
    void wire.ended.then(() => {
      if (expected.get(name) === wire) expected.delete(name)
    })
  }

  function take(name: string): Wire {
    const wire = expected.get(name)
    expected.delete(name)
    return wire ?? dial(deps.target, deps.timeouts.connectMs)
  }

  async function verify(tenant: Tenant): Promise<void> {
    try {
      await logIn(take(tenant.name), deps.scram, tenant)
    } catch (error) {
      if (!REJECTED.includes(sqlStateOf(error))) throw error
      throw new MooringError(EngineCode.loginRefused, `the login of ${tenant.name} does not work`, { cause: error })
    }
  }

  return {
    expect,
    verify,
    [Symbol.dispose]() {
      for (const wire of expected.values()) wire.close()
    },
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
      { user: name, database: name, client_encoding: 'UTF8', application_name: 'mooring' },
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
