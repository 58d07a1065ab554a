import { readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { createIssuer, type IssuerKey } from '../apiserver/auth/issuer.ts'
import { PLATFORM_ADMIN } from '../apiserver/auth/jwt.ts'
import { parseNamespacePath } from '../crds/names.ts'
import type { DataDir } from './data-dir.ts'

/** Maximum time in milliseconds for the response of a Mooring that hangs. The token is printed before. */
const TIMEOUT_MS = 3_000
const URL_LINE = /^export MOORING_URL='(https:\/\/[^']+)'$/m

/** Returns whether the Mooring on the data directory has no such namespace (`acme/prod`). False when none runs there, or none responds. */
export async function isMissing(dir: DataDir, issuer: IssuerKey, namespace: string): Promise<boolean> {
  const path = parseNamespacePath(namespace)
  try {
    const [env, ca] = await Promise.all([readFile(dir.env, 'utf8'), readFile(dir.ca, 'utf8')])
    const url = URL_LINE.exec(env)?.[1]
    if (url === undefined || !path) return false
    // Any other role gets 404 for namespaces that it may not see, too.
    const token = await (await createIssuer(issuer)).sign({ subject: 'token', role: PLATFORM_ADMIN, ttlSeconds: 60 })
    const target = `${url}/v1/organizations/${path.organization}/namespaces/${path.namespace}`
    return (await statusOf(target, { ca, headers: { Authorization: `Bearer ${token}` } })) === 404
  } catch {
    return false
  }
}

function statusOf(url: string, options: { readonly ca: string; readonly headers: Record<string, string> }): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get(url, { ...options, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('error', reject)
  })
}
