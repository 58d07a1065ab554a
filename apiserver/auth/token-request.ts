import { Command } from 'commander'
import { z } from 'zod'
import { KUBERNETES_PREFIX, parseNamespacePath, ROLES } from '../../crds/names.ts'
import type { CommandLine } from '../../process/settings.ts'
import { oneOf } from '../../process/setting-rules.ts'
import { createIssuer, type IssuerKey, type TokenClaims } from './issuer.ts'
import { PLATFORM_ADMIN } from './jwt.ts'
import { MooringError } from '../../shared/errors.ts'

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const MAX_TTL = 30 * SECONDS.d

const Namespace = z
  .string()
  .refine((text) => parseNamespacePath(text) !== undefined, 'an organization and a namespace, such as acme/prod')

const TTL_RULE = 'a number with s, m, h or d, such as 90s or 12h, of 30d at most'
/** Duration such as `90s`, `15m`, `1h` or `7d`, in seconds. */
export const Ttl = z
  .string()
  .regex(/^\d{1,8}[smhd]$/, TTL_RULE)
  .transform((text) => Number(text.slice(0, -1)) * SECONDS[text.slice(-1) as keyof typeof SECONDS])
  .refine((seconds) => seconds >= 1 && seconds <= MAX_TTL, TTL_RULE)

const SUBJECT_RULE = `1 to 256 characters, no control characters, and not begin with ${KUBERNETES_PREFIX}`
const Subject = z
  .string()
  .regex(/^[^\u0000-\u001f\u007f]{1,256}$/, SUBJECT_RULE)
  .refine((text) => !text.startsWith(KUBERNETES_PREFIX), SUBJECT_RULE)

const RULES = {
  namespace: Namespace.optional(),
  role: oneOf([...ROLES, PLATFORM_ADMIN]),
  subject: Subject.optional(),
  ttl: Ttl,
}

/** Creates the command with the flags that all token programs share. */
export function tokenCommand(program: string, description: string): Command {
  return new Command(program)
    .usage('[settings]')
    .description(description)
    .option('--namespace <organization/namespace>', 'default namespace of the token (required for every role but platform-admin)')
    .option('--role <role>', `one of ${[...ROLES, PLATFORM_ADMIN].join(', ')}`, 'editor')
    .option('--ttl <time>', 'validity: 90s, 15m, 1h, 7d; at most 30d', '1h')
    .option('--subject <name>', 'subject of the token (default: role@organization/namespace)')
}

/** Returns the claims that the flags of {@link tokenCommand} request. Pure. */
export function readClaims(flags: Readonly<Record<string, string>>): CommandLine<TokenClaims> {
  const parsed = z.object(RULES).safeParse(flags)
  if (!parsed.success) {
    const sentences = parsed.error.issues.map(({ path, message }) => `mooring: --${String(path[0])} must be ${message}.`)
    return { exit: 2, text: sentences.join('\n') }
  }
  const { namespace, role, ttl, subject } = parsed.data
  if (role !== PLATFORM_ADMIN && namespace === undefined) {
    return { exit: 2, text: `mooring: --namespace is missing: the role ${role} needs a namespace, such as acme/prod.` }
  }
  const who = namespace === undefined ? role : `${role}@${namespace}`
  return { ok: { subject: subject ?? who, namespace, role, ttlSeconds: ttl } }
}

/** Key and claims of a token, and the check of its namespace. */
export interface TokenParts {
  readonly issuer: IssuerKey
  readonly claims: TokenClaims
  /** Returns whether the namespace of the claims is known not to exist. Called after the token is printed. */
  readonly isMissing: () => Promise<boolean>
}

/**
 * Signs and prints the requested token: the token alone on stdout, or an error on stderr and exit code 2. A namespace that does not exist
 * causes only a warning on stderr: it may be created later.
 * @param find returns the parts of the token; throws MooringError, whose message is printed
 */
export async function printToken<R>(request: CommandLine<R>, find: (request: R) => Promise<TokenParts>): Promise<void> {
  if ('exit' in request) {
    ;(request.exit === 0 ? process.stdout : process.stderr).write(`${request.text}\n`)
    process.exitCode = request.exit
    return
  }
  try {
    const { issuer, claims, isMissing } = await find(request.ok)
    const token = await (await createIssuer(issuer)).sign(claims)
    process.stdout.write(`${token}\n`)
    if (await isMissing()) {
      process.stderr.write(
        `mooring: warning: the namespace ${claims.namespace ?? ''} does not exist; the token has no effect until it is created.\n`,
      )
    }
  } catch (error) {
    if (!(error instanceof MooringError)) throw error
    process.stderr.write(`mooring: ${error.message}.\n`)
    process.exitCode = 2
  }
}
