import { z } from 'zod'
import type { IssuerConfig } from '../apiserver/auth/jwt.ts'
import { MooringError } from '../crds/errors.ts'
import type { Settings } from './settings.ts'

const TIMEOUT_MS = 5_000
const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() })

/** Finds where each issuer of `--issuer` publishes its keys (OpenID Connect Discovery 1.0, section 4). @throws MooringError `issuer_unreachable` */
export async function outsideIssuers(issuers: Settings['issuer']): Promise<readonly IssuerConfig[]> {
  return Promise.all(issuers.map(discover))
}

async function discover({ name, url }: Settings['issuer'][number]): Promise<IssuerConfig> {
  try {
    const answer = await fetch(`${url.replace(/\/$/, '')}/.well-known/openid-configuration`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const { issuer, jwks_uri } = Discovery.parse(await answer.json())
    return { name, issuer, keys: { url: new URL(jwks_uri) } }
  } catch (cause) {
    throw new MooringError(
      'issuer_unreachable',
      `the issuer ${name} does not answer with its discovery document: check --issuer`,
      { cause },
    )
  }
}
