import { join } from 'node:path'
import { z } from 'zod'
import { engineError, ServerCode, serverCodeOf } from '../../../engines/mongodb/errors.ts'
import { type Bringing, bringIntoService } from '../../../engines/mongodb/replica-set.ts'
import { keyFileFor, mongodConf } from '../../../engines/mongodb/settings.ts'
import { EngineCode, type AdminTarget } from '../../../engines/engine.ts'
import { codeOf } from '../../../../shared/errors.ts'
import { UNTRUSTED } from '../../../certificates/untrusted.ts'
import { isLoopback } from '../../../../crds/formats/address-list.ts'
import { readPid } from '../spawn/proc.ts'
import { at, type ConfigFile, type DesiredConfig, type EngineProgram, type LoginAttempt } from './program.ts'

const CONFIG = 'mongod.conf'
const KEY_FILE = 'keyfile'
const LOGIN_MS = 2_000
/** Address of this machine that no client uses unless it chooses to. */
const ADMIN_SOURCE = '127.0.0.2'

function configure({ listen, port, password, capacity, size, certificate }: DesiredConfig): readonly ConfigFile[] {
  const tls = { certificateKeyFile: `${at.config}/server.pem`, caFile: `${at.config}/ca.crt` }
  const conf = mongodConf({
    listen,
    port,
    dataDirectory: at.data,
    keyFile: `${at.config}/${KEY_FILE}`,
    tls: isLoopback(listen) ? undefined : tls,
    logFile: `${at.log}/mongod.log`,
    tenants: capacity,
    size,
    unlimited: ADMIN_SOURCE,
  })
  return [
    { name: CONFIG, content: conf },
    { name: KEY_FILE, content: keyFileFor(password), secret: true },
    { name: 'server.pem', content: `${certificate.certificate}\n${certificate.key}\n`, secret: true },
    { name: 'ca.crt', content: certificate.ca },
  ]
}

/** Tries to bring the server into service, which ends with a login of the admin. */
export async function logInToMongodb(target: AdminTarget, more: Omit<Bringing, 'timeoutMs'> = {}): Promise<LoginAttempt> {
  try {
    const service = await bringIntoService(target, { timeoutMs: LOGIN_MS, ...more })
    return service === 'serving' ? { login: 'accepted' } : { login: 'notYet' }
  } catch (error) {
    const trust = innermostCode(error)
    if (trust !== undefined && UNTRUSTED.has(trust)) return { login: 'refused', code: trust }
    const code = serverCodeOf(error)
    if (code !== ServerCode.authenticationFailed && engineError(error).code === EngineCode.unavailable) return { login: 'notYet' }
    return { login: 'refused', code: String(code ?? 'unknown') }
  }
}

/** Code of the first cause of an error: the driver wraps errors of the connection. */
function innermostCode(error: unknown): string | undefined {
  return error instanceof Error && error.cause !== undefined ? innermostCode(error.cause) : codeOf(error)
}

/** Line of the log (MongoDB documentation, "Log Messages"). */
const Line = z.object({ s: z.string(), c: z.string() })
/** Components whose errors name files and addresses. Those of queries and commands have tenants' documents in their attributes. */
const SHOWABLE: ReadonlySet<string> = new Set(['CONTROL', 'STORAGE', 'NETWORK', 'REPL', 'ACCESS', 'WT', '-'])

function isShowable(line: string): boolean {
  if (!line.startsWith('{')) return true
  try {
    const { s, c } = Line.parse(JSON.parse(line))
    return ['F', 'E'].includes(s) && SHOWABLE.has(c)
  } catch {
    return false
  }
}

export const mongodb: EngineProgram = {
  // The server starts on an empty directory, which takes no longer than on a copy (measured).
  initialise: () => [],
  trim: () => Promise.resolve(),
  configure,
  serve: { file: 'bin/mongod', args: ['--config', `${at.config}/${CONFIG}`] },
  // The first line is the pid (MongoDB, storage_engine_lock_file_posix.cpp).
  mainPid: (data) => readPid(join(data, 'mongod.lock')),
  logIn: (target) => logInToMongodb(target),
  // SIGUSR1 opens the log file anew. Certificates are reloaded by a command at the admin's login.
  signals: { reload: 'SIGUSR1', fast: 'SIGTERM', immediate: 'SIGKILL' },
  adminSource: ADMIN_SOURCE,
  tlsOnly: true,
  // A shutdown waits for an expression that no kill interrupts (operator/engines/mongodb/watchdog.ts).
  mayHang: true,
  isShowable,
}
