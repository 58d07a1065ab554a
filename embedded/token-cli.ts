import { printToken } from '../apiserver/auth/token-request.ts'
import { MooringError } from '../shared/errors.ts'
import { dataDirAt, readIssuer } from './data-dir.ts'
import { isMissing } from './namespace-check.ts'
import { parseTokenRequest } from './token-request.ts'

/** Program of `npm run token`. It works whether Mooring runs or not. */
await printToken(parseTokenRequest(process.argv.slice(2), process.env), async ({ claims, dataDir }) => {
  const dir = dataDirAt(dataDir)
  const issuer = await readIssuer(dir)
  if (!issuer) throw new MooringError('no_issuer', `no issuer in ${dir.path} yet; run npm start once, then try again`)
  const { namespace } = claims
  return { claims, issuer, isMissing: async () => namespace !== undefined && isMissing(dir, issuer, namespace) }
})
