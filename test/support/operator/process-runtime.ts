import { KeyObject, randomUUID, type webcrypto } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import 'reflect-metadata'
import {
  BasicConstraintsExtension,
  type JsonGeneralName,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { pino } from 'pino'
import pg from 'pg'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { Motor } from '../../../crds/motor.ts'
import type { ServerRuntime, ServerState } from '../../../operator/server/runtime.ts'
import { chooseConfinement, type ConfinementDeps } from '../../../operator/server/process/confinement/confinement.ts'
import { type ServerPaths, readRecord, type Record as ServerRecord } from '../../../operator/server/process/files/paths.ts'
import type { ProcessId } from '../../../operator/server/process/spawn/proc.ts'
import { createProcessRuntime, type ProcessRuntimeDeps } from '../../../operator/server/process/process-runtime.ts'
import type { EngineCertificate } from '../../../operator/server/process/programs/program.ts'
import { scratch as scratchRoot, shareBlanks } from '../postgresql/disks.ts'

/** For tests: real servers in a scratch directory. */
export const credentials = { user: 'mooring', password: "it's_a_secret_\\_of_24_characters" }

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Creates a CA, and a certificate signed by it for loopback. */
export async function makeCertificate(): Promise<EngineCertificate> {
  const [authority, keys] = await Promise.all([newKeys(), newKeys()])
  const ca = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test CA',
    keys: authority,
    signingAlgorithm: ALGORITHM,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  })
  const names: JsonGeneralName[] = ['127.0.0.1', '127.0.0.2', '::1'].map((value) => ({ type: 'ip', value }))
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=database',
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey: authority.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [new SubjectAlternativeNameExtension(names)],
  })
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString()
  return { key, certificate: certificate.toString('pem'), ca: ca.toString('pem') }
}

const newKeys = (): Promise<webcrypto.CryptoKeyPair> => crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])

export interface Scratch extends AsyncDisposable {
  readonly directory: string
}

/**
 * Creates a directory. On disposal it stops all servers in it and removes it. The first server in it is created from scratch.
 */
export async function bareScratch(): Promise<Scratch> {
  const directory = await mkdtemp(join(await scratchRoot(), 'mooring-process-'))
  return {
    directory,
    [Symbol.asyncDispose]: async () => {
      const stopper = await runtimeIn(directory)
      await stopper.close()
      await rm(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Creates the same directory, in which servers are copies of prepared ones. */
export async function scratch(): Promise<Scratch> {
  const at = await bareScratch()
  await shareBlanks(at.directory)
  return at
}

/** Settings that a test overrides. */
export type RuntimeTraits = Partial<ProcessRuntimeDeps> & Pick<ConfinementDeps, 'kinds'>

export async function runtimeIn(directory: string, { kinds, ...overrides }: RuntimeTraits = {}): Promise<ServerRuntime> {
  const certificate = await makeCertificate()
  const { logger = pino({ level: 'silent' }) } = overrides
  return createProcessRuntime({
    confinement: await chooseConfinement({ directory, logger, kinds }),
    directory,
    ...{ listen: '127.0.0.1', publicHost: overrides.listen ?? '127.0.0.1' },
    certificate: () => certificate,
    compatibleMotors: 'nearest',
    logger,
    ...overrides,
  })
}

export function databaseServer(motor: Motor = 'postgresql-15.4.0', uid: string = randomUUID()): DatabaseServer {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'DatabaseServer',
    metadata: {
      name: `server-${uid}`,
      namespace: 'mooring-shared',
      uid,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2025-01-01T00:00:00Z',
    },
    spec: { motor, region: randomUUID(), tenancy: 'shared', capacity: 50 },
  }
}

type Phase = ServerState['phase']

/** Ensures the server at every change, as a reconciler does, until it has reached a phase. */
export async function reach<P extends Phase>(
  runtime: ServerRuntime,
  server: DatabaseServer,
  phase: P,
  password = credentials.password,
): Promise<Extract<ServerState, { phase: P }>> {
  let wake = (): void => undefined
  runtime.onChange((name) => {
    if (name === server.metadata.name) wake()
  })
  for (;;) {
    const changed = new Promise<void>((resolve) => (wake = resolve))
    const state = await runtime.ensure(server, { ...credentials, password })
    if (isIn(state, phase)) return state
    await changed
  }
}

const isIn = <P extends Phase>(state: ServerState, phase: P): state is Extract<ServerState, { phase: P }> => state.phase === phase

/** Opens a session of the admin; dispose of it. */
export async function connect(port: number, options: pg.ClientConfig = {}): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ host: '127.0.0.1', port, database: 'postgres', ...credentials, ...options })
  client.on('error', () => undefined)
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

/** Returns the first value of the first row. */
export async function ask(client: pg.Client, sql: string): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(sql)
  return Object.values(rows[0] ?? {})[0]
}

/** Returns the record of a server. @throws Error when it has no process */
export async function recordOf(paths: ServerPaths): Promise<ServerRecord & { process: ProcessId }> {
  const record = await readRecord(paths)
  if (!record?.process) throw new Error('the record has no process')
  return { ...record, process: record.process }
}
