import { MooringError } from '../../shared/errors.ts'
import type { CommandLine } from '../../process/command-line.ts'
import { createIssuer, type IssuerKey, type TokenClaims } from './issuer.ts'

/**
 * All that is left of a program that prints a token once its command line is read: the token alone on stdout, or a sentence on stderr
 * and exit 2.
 * @param find whose token, saying what. @throws MooringError whose message is that sentence
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
