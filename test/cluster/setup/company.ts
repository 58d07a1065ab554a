import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { vi } from 'vitest'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { POSTGRES_IMAGES } from './cluster.ts'
import type { Kubernetes } from './commands.ts'
import { KUBECTL_WAIT, LATER } from '../../support/patience.ts'

/** PostgreSQL that a company runs itself, with a database for the journal as in docs/install.md. */
export interface CompanyPostgresql extends AsyncDisposable {
  /** URI with the login that owns the database and may create roles. */
  readonly uri: string
  /** PEM of the company's CA. */
  readonly ca: string
  /** Runs a statement in that database as the superuser, or as the user `as`. @throws the error of the driver */
  query(text: string, as?: { readonly user: string; readonly password: string }): Promise<readonly Record<string, unknown>[]>
}

const NAMESPACE = 'company'
const HOST = `postgresql.${NAMESPACE}.svc`
const RULER = { user: 'company', password: 'rules-the-server' }
const PASSWORD = 'owns-the-journal'
const JOURNAL = 'mooring_journal'

export async function startCompanyPostgresql({ kubectl }: Pick<Kubernetes, 'kubectl'>): Promise<CompanyPostgresql> {
  const authority = await createCa(new Date())
  const { certificate, key } = await issueCertificate({ ca: authority, names: [HOST], now: new Date() })
  const { certificate: ca } = authority
  await kubectl(['create', 'namespace', NAMESPACE])
  const files = { 'tls.crt': certificate, 'tls.key': key, 'pg_hba.conf': HBA, password: RULER.password }
  await kubectl(['apply', '--filename', '-'], { apiVersion: 'v1', kind: 'List', items: objects(files) })
  await kubectl(['rollout', 'status', 'deployment/postgresql', '--namespace', NAMESPACE, KUBECTL_WAIT])
  const host = await kubectl(['get', 'service/postgresql', '--namespace', NAMESPACE, '--output', 'jsonpath={.spec.clusterIP}'])

  async function ask(
    text: string,
    { database = JOURNAL, ...login }: pg.ClientConfig,
  ): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ host, database, ...login, ssl: { ca, servername: HOST }, connectionTimeoutMillis: 5_000 })
    try {
      await client.connect()
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }

  const rule = (text: string) => ask(text, { ...RULER, database: 'postgres' })
  await vi.waitFor(() => rule('SELECT'), LATER)
  await rule(`CREATE ROLE ${JOURNAL} LOGIN CREATEROLE PASSWORD '${PASSWORD}'`)
  await rule(`CREATE DATABASE ${JOURNAL} OWNER ${JOURNAL}`)
  return {
    ...{ uri: `postgresql://${JOURNAL}:${PASSWORD}@${HOST}:5432/${JOURNAL}`, ca },
    query: (text, as = RULER) => ask(text, as),
    async [Symbol.asyncDispose]() {
      await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false'])
    },
  }
}

/** Client authentication rules, which require TLS. */
const HBA = 'local all all trust\nhostssl all all all scram-sha-256\n'
const DATA = '/data/pgdata'
const START = `set -eu
initdb --pgdata ${DATA} --username ${RULER.user} --pwfile /company/password --auth trust --no-sync
exec postgres -D ${DATA} -c listen_addresses='*' -c fsync=off -c hba_file=/company/pg_hba.conf -c unix_socket_directories=/data \
  -c ssl=on -c ssl_cert_file=/company/tls.crt -c ssl_key_file=/company/tls.key`

function objects(stringData: Readonly<Record<string, string>>): readonly object[] {
  const metadata = { name: 'postgresql', namespace: NAMESPACE }
  const labels = { app: 'postgresql' }
  const container = {
    ...{ name: 'postgresql', image: `docker.io/library/postgres:${POSTGRES_IMAGES['15'].replace('postgres:', '')}` },
    ...{ imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', START] },
    volumeMounts: [
      { name: 'company', mountPath: '/company' },
      { name: 'data', mountPath: '/data' },
    ],
    readinessProbe: { tcpSocket: { port: 5432 }, periodSeconds: 1 },
  }
  const spec = {
    securityContext: { runAsUser: 999, runAsGroup: 999, fsGroup: 999 },
    containers: [container],
    volumes: [
      { name: 'company', secret: { secretName: 'postgresql', defaultMode: 0o440 } },
      { name: 'data', emptyDir: {} },
    ],
  }
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata, stringData },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: labels, ports: [{ port: 5432 }] } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]
}

/** OpenID provider of a company with its own CA, reduced to what a verifier of tokens needs. */
export interface IdentityProvider extends AsyncDisposable {
  readonly url: string
  /** PEM of the CA of the provider's certificate. */
  readonly ca: string
  /** Signs a token that is valid for one hour. */
  token(claims: { readonly subject: string; readonly audience: string; readonly groups?: readonly string[] }): Promise<string>
}

const ALGORITHM = 'RS256'

/** Starts the provider. @param address address of this machine that the cluster's pods reach */
export async function startIdentityProvider(address: string): Promise<IdentityProvider> {
  const ca = await createCa(new Date())
  const certificate = await issueCertificate({ ca, names: [address], now: new Date() })
  const { publicKey, privateKey } = await generateKeyPair(ALGORITHM)
  const header = { alg: ALGORITHM, kid: 'of-the-company' }
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), ...header, use: 'sig' }] }

  const server = createServer({ cert: certificate.certificate, key: certificate.key }, (req, res) => {
    const documents: Readonly<Record<string, object>> = {
      '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/keys` },
      '/keys': jwks,
    }
    const found = documents[req.url ?? '']
    res.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(found ?? {}))
  })
  await once(server.listen(0, address), 'listening')
  const url = `https://${address}:${(server.address() as AddressInfo).port}`

  return {
    url,
    ca: ca.certificate,
    token: ({ subject, audience, groups }) =>
      new SignJWT(groups ? { groups } : {})
        .setProtectedHeader(header)
        .setIssuer(url)
        .setSubject(subject)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey),
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
