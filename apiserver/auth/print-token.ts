import { MooringError } from '../../shared/errors.ts'
import type { CommandLine } from '../../process/command-line.ts'
import { createIssuer, type IssuerKey, type TokenClaims } from './issuer.ts'

/**
 * Signs and prints the requested token: the token alone on stdout, or an error on stderr and exit code 2.
 * @param find returns the issuer's key and the claims; throws MooringError, whose message is printed
 */
export async function printToken<R>(
  request: CommandLine<R>,
  find: (request: R) => Promise<{ readonly issuer: IssuerKey; readonly claims: TokenClaims }>,
): Promise<void> {
  if ('exit' in request) {
    ;(request.exit === 0 ? process.stdout : process.stderr).write(`${request.text}\n`)
    process.exitCode = request.exit
    return
  }
  try {
    const { issuer, claims } = await find(request.ok)
    const token = await (await createIssuer(issuer)).sign(claims)
    process.stdout.write(`${token}\n`)
  } catch (error) {
    if (!(error instanceof MooringError)) throw error
    process.stderr.write(`mooring: ${error.message}.\n`)
    process.exitCode = 2
  }
}
