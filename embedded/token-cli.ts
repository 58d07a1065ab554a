import { createIssuer } from '../apiserver/auth/issuer.ts'
import { MooringError } from '../crds/errors.ts'
import { dataDirAt } from './data-dir.ts'
import { readIssuer } from './issuer-file.ts'
import { parseTokenRequest } from './token-request.ts'

/** `npm run token`: the token alone on stdout, or a sentence on stderr and exit 2. Works while Mooring runs and while it does not. */
async function main(): Promise<0 | 2> {
  const request = parseTokenRequest(process.argv.slice(2), process.env)
  if ('exit' in request) {
    if (request.exit === 0) console.log(request.text)
    else console.error(request.text)
    return request.exit
  }
  const dir = dataDirAt(request.ok.dataDir)
  const stored = await readIssuer(dir)
  if (!stored) {
    console.error(`mooring: there is no issuer in ${dir.path} yet; run npm start once, then ask again.`)
    return 2
  }
  const issuer = await createIssuer(stored)
  console.log(await issuer.sign(request.ok.claims))
  return 0
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof MooringError)) throw error
  console.error(`mooring: ${error.message}.`)
  process.exitCode = 2
}
