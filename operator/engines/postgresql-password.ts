import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { MooringError } from '../../crds/errors.ts'
import { EngineCode } from './engine.ts'

const ITERATIONS = 4096
const derive = promisify(pbkdf2)

/**
 * What PostgreSQL stores of a password, made here, so that the password itself is in no statement and can be in no log:
 * `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey` (RFC 5803; PostgreSQL documentation, `pg_authid`). RFC 7677 wants
 * at least 4096 iterations, and drivers refuse fewer.
 * @throws MooringError `engine_failed` for one that is not printable ASCII: SASLprep leaves those alone, but not all others
 */
export async function scramVerifier(password: string): Promise<string> {
  if (!/^[\x21-\x7e]+$/.test(password)) throw new MooringError(EngineCode.failed, 'a password must be printable ASCII')
  const salt = randomBytes(16)
  const salted = await derive(password, salt, ITERATIONS, 32, 'sha256')
  const hmac = (text: string): Buffer => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${hmac('Server Key').toString('base64')}`
}
