import { Command } from 'commander'
import { z } from 'zod'
import { PLATFORM_ADMIN } from '../apiserver/auth/jwt.ts'
import type { TokenClaims } from '../apiserver/auth/issuer.ts'
import { ROLES, SLUG, SLUG_MAX } from '../crds/names.ts'
import { type CommandLine, nonEmpty, readFlags } from './command-line.ts'
import { oneOf, Path } from './setting-rules.ts'

/** What `npm run token` was asked for. */
export interface TokenRequest {
  readonly dataDir: string
  readonly claims: TokenClaims
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const MAX_TTL = 30 * SECONDS.d

const isSlug = (text: string): boolean => text.length <= SLUG_MAX && SLUG.test(text)
const Namespace = z.string().refine((text) => {
  const slugs = text.split('/')
  return slugs.length === 2 && slugs.every(isSlug)
}, 'an organization and a namespace, such as acme/prod')

const TTL_RULE = 'a number with s, m, h or d, such as 90s or 12h, of 30d at most'
/** `90s`, `15m`, `1h`, `7d`: in seconds. */
export const Ttl = z
  .string()
  .regex(/^\d{1,8}[smhd]$/, TTL_RULE)
  .transform((text) => Number(text.slice(0, -1)) * SECONDS[text.slice(-1) as keyof typeof SECONDS])
  .refine((seconds) => seconds >= 1 && seconds <= MAX_TTL, TTL_RULE)

const Subject = z
  .string()
  .regex(/^(?!system:)[^\u0000-\u001f\u007f]{1,256}$/, '1 to 256 characters, no control characters, and not begin with system:')

const RULES = {
  dataDir: Path,
  namespace: Namespace.optional(),
  role: oneOf([...ROLES, PLATFORM_ADMIN]),
  subject: Subject.optional(),
  ttl: Ttl,
}

/** Reads the command line of `npm run token`. Pure. */
export function parseTokenRequest(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CommandLine<TokenRequest> {
  const flags = readFlags<Record<string, string>>(command(), argv)
  if ('exit' in flags) return flags
  const dataDir = flags.ok.dataDir ?? nonEmpty(env.MOORING_DATA_DIR) ?? '.mooring'
  const parsed = z.object(RULES).safeParse({ ...flags.ok, dataDir })
  if (!parsed.success) {
    const flagOf = (path: readonly PropertyKey[]): string => (path[0] === 'dataDir' ? 'data-dir' : String(path[0]))
    return {
      exit: 2,
      text: parsed.error.issues.map(({ path, message }) => `mooring: --${flagOf(path)} must be ${message}.`).join('\n'),
    }
  }
  const { namespace, role, ttl, subject } = parsed.data
  if (role !== PLATFORM_ADMIN && namespace === undefined) {
    return { exit: 2, text: `mooring: --namespace is missing: the role ${role} is one in a namespace, such as acme/prod.` }
  }
  const who = namespace === undefined ? role : `${role}@${namespace}`
  return { ok: { dataDir: parsed.data.dataDir, claims: { subject: subject ?? who, namespace, role, ttlSeconds: ttl } } }
}

function command(): Command {
  return new Command('npm run token --')
    .usage('[settings]')
    .description('Prints a token of the embedded issuer. It can be used on this data directory alone, and until it expires.')
    .option('--namespace <organization/namespace>', 'its home namespace (needed for every role but platform-admin)')
    .option('--role <role>', `one of ${[...ROLES, PLATFORM_ADMIN].join(', ')}`, 'editor')
    .option('--ttl <time>', 'how long it is valid: 90s, 15m, 1h, 7d; at most 30d', '1h')
    .option('--subject <name>', 'who it is for (default: role@organization/namespace)')
    .option('--data-dir <path>', 'as given to npm start (default: .mooring; MOORING_DATA_DIR)')
}
