import type { EdgePorts } from '../edge/edge.ts'
import type { Motor } from '../crds/motor.ts'
import { shellQuote } from './publish.ts'
import type { DataDir } from './data-dir.ts'

export interface WelcomeFacts {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** URLs for other machines; empty without a public host. */
  readonly publicUrls: readonly string[]
  /** URLs of plain HTTP, of the listeners that have it on. */
  readonly httpUrls: readonly string[]
  readonly dataDir: DataDir
  /** Token of the platform admin, valid for 12 hours. */
  readonly token: string
  /** Link that signs in to the dashboard, once. */
  readonly dashboardUrl: string
  /** UUID of the region in the example. */
  readonly region: string
  /** Motor in the example; undefined when the region serves none. */
  readonly motor: Motor | undefined
  /** Host and ports of the edge, and its domain. */
  readonly edge: { readonly sshHost: string; readonly ports: EdgePorts; readonly domain: string }
}

/**
 * Returns the message of `npm start` when Mooring is ready: the URLs, and three lines that a new user can paste into another
 * terminal to connect to a first database. They need a POSIX shell, curl, node and psql. The message holds the token: print it to
 * the terminal alone, never to a log. Pure.
 */
export function welcome(facts: WelcomeFacts): string {
  const { sharedUrl, dedicatedUrl, publicUrls, httpUrls, dataDir, token, dashboardUrl, region, motor, edge } = facts
  const plain = httpUrls.length === 0 ? '' : `\n  plain HTTP     ${httpUrls.join(', ')}   (this machine only)`
  const elsewhere = publicUrls.length === 0 ? '' : `\n  from elsewhere ${publicUrls.join(', ')}   (CA: ${dataDir.ca})`
  // Names below localhost resolve to the client's own machine (RFC 6761, section 6.3).
  const isLocal = publicUrls.length > 0 && /(^|\.)localhost$/.test(edge.domain)
  const visitors = isLocal
    ? `\n                 (${edge.domain} is for this machine alone: set --domain for visitors from other machines)`
    : ''
  return `
Mooring is ready.

  dashboard      ${dashboardUrl}
                 (signs in once, within 12 h; later with the token; by HTTPS at ${publicUrls[0] ?? sharedUrl}/dashboard)
  shared API     ${sharedUrl}   (reference: ${sharedUrl}/docs)
  dedicated API  ${dedicatedUrl}${elsewhere}${plain}
  tunnels        ssh to ${edge.sshHost}:${edge.ports.ssh}, visitors to port ${edge.ports.https} (first steps: README, "A tunnel from my laptop")${visitors}
  token          ${token}
                 (platform admin, default namespace default/default, 12 h; also in ${dataDir.token})
  state          ${dataDir.path}   (delete it to start over)
${motor === undefined ? '' : firstDatabase({ env: dataDir.env, region, motor })}
Ctrl-C stops Mooring and its servers; the data stays.
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
  // For an error response the message replaces the uri, so that the user sees it.
  const extract = `node -p 'r=JSON.parse(require("fs").readFileSync(0,"utf8")); r.data?.instance.uri ?? r.msg'`
  return `
Your first database, in another terminal:

  . ${shellWord(env)}
  uri=$(${request} | ${extract}); echo "$uri"
  psql "$uri" -c 'select version()'
`
}
