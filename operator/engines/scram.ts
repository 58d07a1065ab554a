import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { MooringError } from '../../shared/errors.ts'
import { randomPassword } from '../secret-data.ts'
import { EngineCode } from './engine.ts'

/** Minimum iteration count of RFC 7677, section 4; drivers reject fewer. */
const MINIMUM_ITERATIONS = 4096
const KEY_BYTES = 32
/** Length of the salts that MongoDB creates for SCRAM-SHA-256; PostgreSQL accepts any. */
const SALT_BYTES = 28
/** Lifetime of a cached derivation, which covers the time from draw to first login even for a queued claim. */
const REMEMBERED_MS = 30_000
/** Delay between a draw and the derivation of the next password, so that the derivation does not slow down the current claim. */
const REST_MS = 250
const derive = promisify(pbkdf2)

/** Salted password of SCRAM. Its PBKDF2 takes as long as the rest of a login, so it is computed once. */
interface Derivation {
  readonly salt: Buffer
  readonly iterations: number
  readonly salted: Promise<Buffer>
}

/** Client side of one login. The messages have the names and formats of RFC 5802, section 7. */
export interface ScramExchange {
  readonly mechanism: 'SCRAM-SHA-256'
  /** The client-first-message. */
  readonly first: string
  /** Returns the client-final-message for a server-first-message. @throws MooringError `engine_failed` for an invalid or weak message */
  answer(serverFirst: string): Promise<string>
  /** Verifies the server's signature in its server-final-message. @throws MooringError `engine_failed` when the signature is wrong */
  check(serverFinal: string): void
}

/** Values that a server stores for a password (RFC 5802, section 3), in base64 except for the count. */
export interface ScramCredentials {
  readonly iterationCount: number
  readonly salt: string
  readonly storedKey: string
  readonly serverKey: string
}

/** SCRAM-SHA-256 (RFC 5802, RFC 7677) for passwords of printable ASCII, which SASLprep does not change. */
export interface Scram {
  /** Returns a new password. The derivation for {@link Scram.verifier} and the first login is done or in progress. */
  draw(): string
  /**
   * Returns the verifier that PostgreSQL stores for a password: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey` (RFC 5803; PostgreSQL
   * documentation, `pg_authid`). With a verifier in place of the password, no statement and no log contains the password.
   * @throws MooringError `engine_failed` for a password that is not printable ASCII
   */
  verifier(password: string): Promise<string>
  /** Returns the values of {@link Scram.verifier}. @throws MooringError `engine_failed` for a password that is not printable ASCII */
  credentials(password: string): Promise<ScramCredentials>
  /** Whether stored values belong to this password. False for another iteration count. */
  proves(password: string, stored: ScramCredentials): Promise<boolean>
  /** Whether a stored verifier belongs to this password. False for any other text. */
  matches(password: string, stored: string): Promise<boolean>
  /** Starts a login with a password. `user`: name for servers that take it from the exchange, without `,` and `=`; default `*`. */
  exchange(password: string, user?: string): ScramExchange
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const hash = (data: Buffer): Buffer => createHash('sha256').update(data).digest()
const failed = (message: string): MooringError => new MooringError(EngineCode.failed, message)

/** Creates a SCRAM client that caches derivations by password for {@link REMEMBERED_MS}. `count`: iterations of new derivations. */
export function createScram(count = MINIMUM_ITERATIONS): Scram {
  const remembered = new Map<string, Derivation>()
  let ahead: (Derivation & { readonly password: string }) | undefined

  function start(password: string): Derivation {
    const known = remembered.get(password)
    if (known) return known
    if (!/^[\x21-\x7e]+$/.test(password)) throw failed('a password must be printable ASCII')
    return remember(password, derivation(password, count))
  }

  function remember(password: string, derived: Derivation): Derivation {
    remembered.set(password, derived)
    setTimeout(() => remembered.delete(password), REMEMBERED_MS).unref()
    return derived
  }

  function fresh(): Derivation & { readonly password: string } {
    const password = randomPassword()
    return { password, ...derivation(password, count) }
  }

  function draw(): string {
    const { password, ...derived } = ahead ?? fresh()
    ahead = undefined
    remember(password, derived)
    setTimeout(() => (ahead ??= fresh()), REST_MS).unref()
    return password
  }

  function salted(password: string, salt: Buffer, iterations: number): Promise<Buffer> {
    const known = remembered.get(password)
    if (known?.iterations === iterations && known.salt.equals(salt)) return known.salted
    return derive(password, salt, iterations, KEY_BYTES, 'sha256')
  }

  function exchange(password: string, user = '*'): ScramExchange {
    // PostgreSQL takes the user name from the startup message and ignores the one here.
    const bare = `n=${user},r=${randomBytes(18).toString('base64')}`
    let expected: Buffer | undefined
    return {
      mechanism: 'SCRAM-SHA-256',
      first: `n,,${bare}`,
      async answer(serverFirst) {
        const { nonce, salt, iterations } = parseServerFirst(serverFirst)
        if (!`n=${user},r=${nonce}`.startsWith(bare) || `n=${user},r=${nonce}` === bare)
          throw failed('the server answered another login')
        const key = await salted(password, salt, iterations)
        const withoutProof = `c=biws,r=${nonce}`
        const message = [bare, serverFirst, withoutProof].join()
        expected = hmac(hmac(key, 'Server Key'), message)
        const clientKey = hmac(key, 'Client Key')
        const signature = hmac(hash(clientKey), message)
        const proof = clientKey.map((byte, index) => byte ^ (signature[index] ?? 0))
        return `${withoutProof},p=${Buffer.from(proof).toString('base64')}`
      },
      check(serverFinal) {
        const signature = Buffer.from(/^v=([\w+/=]+)$/.exec(serverFinal)?.[1] ?? '', 'base64')
        if (expected?.length !== signature.length || !timingSafeEqual(expected, signature))
          throw failed('the server does not know the password')
      },
    }
  }

  async function credentials(password: string): Promise<ScramCredentials> {
    const { salt, iterations, salted } = start(password)
    const key = await salted
    const storedKey = hash(hmac(key, 'Client Key')).toString('base64')
    const serverKey = hmac(key, 'Server Key').toString('base64')
    return { iterationCount: iterations, salt: salt.toString('base64'), storedKey, serverKey }
  }

  async function proves(
    password: string,
    { iterationCount, salt, storedKey }: Omit<ScramCredentials, 'serverKey'>,
  ): Promise<boolean> {
    // A tenant may store its own values, in which a high iteration count would cost the operator time.
    if (iterationCount !== count) return false
    const key = await salted(password, Buffer.from(salt, 'base64'), iterationCount)
    const found = hash(hmac(key, 'Client Key'))
    const wanted = Buffer.from(storedKey, 'base64')
    return found.length === wanted.length && timingSafeEqual(found, wanted)
  }

  return {
    draw,
    async verifier(password) {
      const { iterationCount, salt, storedKey, serverKey } = await credentials(password)
      return `SCRAM-SHA-256$${iterationCount}:${salt}$${storedKey}:${serverKey}`
    },
    credentials,
    proves,
    async matches(password, stored) {
      const [, iterations, salt = '', storedKey = ''] =
        /^SCRAM-SHA-256\$(\d{1,7}):([\w+/=]+)\$([\w+/=]+):[\w+/=]+$/.exec(stored) ?? []
      return proves(password, { iterationCount: Number(iterations), salt, storedKey })
    },
    exchange,
  }
}

function derivation(password: string, iterations: number): Derivation {
  const salt = randomBytes(SALT_BYTES)
  return { salt, iterations, salted: derive(password, salt, iterations, KEY_BYTES, 'sha256') }
}

/** Parses `r=…,s=…,i=…`. Rejects fewer iterations than the standard, with which the password could be guessed from the proof. */
function parseServerFirst(text: string): { nonce: string; salt: Buffer; iterations: number } {
  const [, nonce, salt, count] = /^r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/]+=*),i=(\d{4,6})$/.exec(text) ?? []
  const iterations = Number(count)
  if (nonce === undefined || salt === undefined || !(iterations >= MINIMUM_ITERATIONS))
    throw failed('the server asks for a weak or broken login')
  return { nonce, salt: Buffer.from(salt, 'base64'), iterations }
}
