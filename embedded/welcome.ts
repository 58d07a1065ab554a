import type { EdgePorts } from '../edge/edge.ts'
import type { Motor } from '../crds/motor.ts'
import { shellQuote } from './client-files.ts'
import type { DataDir } from './data-dir.ts'

export interface WelcomeFacts {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** The same as others reach them; empty where nobody was told another host. */
  readonly publicUrls: readonly string[]
  /** Of the same listeners over plain HTTP, those that are on. */
  readonly httpUrls: readonly string[]
  readonly dataDir: DataDir
  /** The platform admin's, of 12 hours. */
  readonly token: string
  /** UUID of the region to try. */
  readonly region: string
  /** A motor that the region serves; absent when it serves none. */
  readonly motor: Motor | undefined
  /** How the edge is reached. */
  readonly edge: { readonly sshHost: string; readonly ports: EdgePorts; readonly domain: string }
}

/**
 * What `npm start` says when all is ready: where things are, and three lines that a stranger copies into another terminal to be
 * connected to a database of their own. They need a POSIX shell, curl, node and psql. Holds the
 * token, so it is for the terminal alone, never for a log. Pure.
 */
export function welcome(facts: WelcomeFacts): string {
  const { sharedUrl, dedicatedUrl, publicUrls, httpUrls, dataDir, token, region, motor, edge } = facts
  const plain = httpUrls.length === 0 ? '' : `\n  plain HTTP     ${httpUrls.join(', ')}   (on this machine alone)`
  const elsewhere = publicUrls.length === 0 ? '' : `\n  from elsewhere ${publicUrls.join(', ')}   (CA: ${dataDir.ca})`
  // Names below localhost lead to the machine of whoever asks (RFC 6761, section 6.3).
  const isLocal = publicUrls.length > 0 && /(^|\.)localhost$/.test(edge.domain)
  const visitors = isLocal ? `\n                 (${edge.domain} is for this machine alone: --domain names one for others)` : ''
  return `
Mooring is ready.

  shared API     ${sharedUrl}   (reference: ${sharedUrl}/docs)
  dedicated API  ${dedicatedUrl}${elsewhere}${plain}
  tunnels        ssh to ${edge.sshHost}:${edge.ports.ssh}, visitors to port ${edge.ports.https} (first steps: README, "A tunnel from my laptop")${visitors}
  token          ${token}
                 (platform admin, home default/default, 12 h; also in ${dataDir.token})
  state          ${dataDir.path}   (delete it to start afresh)
${motor === undefined ? '' : firstDatabase({ env: dataDir.env, region, motor })}
Ctrl-C stops all that was started here; the data stays.
`
}

const shellWord = (path: string): string => (/^[\w/.-]+$/.test(path) ? path : shellQuote(path))

/** Lifetime of the database to try, in seconds: a week. */
const FIRST_SECONDS = 604_800

function firstDatabase({ env, region, motor }: { env: string; region: string; motor: Motor }): string {
  const body = JSON.stringify({ region, motor, ttl: FIRST_SECONDS })
  const request = [
    `curl -sS --cacert "$MOORING_CA" -H "Authorization: Bearer $MOORING_TOKEN"`,
    `-H 'Content-Type: application/json' -X PUT -d ${shellQuote(body)} "$MOORING_URL/v1/instances/by-identifier/first"`,
  ].join(' ')
  // On a refusal the sentence of the answer takes the place of the uri, so that it is seen.
  const extract = `node -p 'r=JSON.parse(require("fs").readFileSync(0,"utf8")); r.data?.instance.uri ?? r.msg'`
  return `
Your first database, in another terminal:

  . ${shellWord(env)}
  uri=$(${request} | ${extract}); echo "$uri"
  psql "$uri" -c 'select version()'
`
}
