import type { TokenClaims } from '../apiserver/auth/issuer.ts'
import { readClaims, tokenCommand } from '../apiserver/auth/token-request.ts'
import { type CommandLine, nonEmpty, readFlags } from '../process/settings.ts'
import { Path } from '../process/setting-rules.ts'

/** Parsed command line of `npm run token`. */
export interface TokenRequest {
  readonly dataDir: string
  readonly claims: TokenClaims
}

/** Reads the command line of `npm run token`. Pure. */
export function parseTokenRequest(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CommandLine<TokenRequest> {
  const command = tokenCommand(
    'npm run token --',
    'Prints a token of the embedded issuer. It is valid for this data directory alone, until it expires.',
  ).option('--data-dir <path>', 'as given to npm start (default: .mooring; MOORING_DATA_DIR)')
  const flags = readFlags<Record<string, string>>(command, argv)
  if ('exit' in flags) return flags
  const dataDir = Path.safeParse(flags.ok.dataDir ?? nonEmpty(env.MOORING_DATA_DIR) ?? '.mooring')
  if (!dataDir.success) return { exit: 2, text: `mooring: --data-dir must be ${dataDir.error.issues[0]?.message ?? 'a path'}.` }
  const claims = readClaims(flags.ok)
  return 'exit' in claims ? claims : { ok: { dataDir: dataDir.data, claims: claims.ok } }
}
