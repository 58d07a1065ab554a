import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JSONWebKeySet } from 'jose'
import type { Logger } from 'pino'
import { z } from 'zod'
import { type PolledFiles, pollFiles } from '../process/polled-files.ts'
import { MooringError } from '../shared/errors.ts'

/** Content of the operator's Secret for the API, mounted as files. */
export interface ApiFiles {
  /** Certificate chain of the listeners, in PEM. */
  readonly certificate: string
  readonly key: string
  /** Certificate chain and key issued by the operator, for callers inside the cluster; independent of the listeners' certificate. */
  readonly inside: { readonly certificate: string; readonly key: string }
  /** URL of Mooring's own issuer. */
  readonly issuer: string
  readonly jwks: JSONWebKeySet
  /** Secret from which API tokens of requests with an Idempotency-Key are derived. */
  readonly tokenSecret: Uint8Array
}

export interface MountedFilesDeps {
  /** Mount path of the operator's Secret. */
  readonly directory: string
  /** Directory of `tls.crt` and `tls.key` when the administrator provides them. */
  readonly tlsDirectory?: string | undefined
  readonly log: Pick<Logger, 'info' | 'error'>
  readonly everyMs?: number
}

/** Current files. Disposing stops the polling. */
export type MountedFiles = PolledFiles<ApiFiles>

const Keys = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) })
const Pem = z.string().regex(/-----BEGIN /)
const Content = z.object({
  certificate: Pem,
  key: Pem,
  insideCertificate: Pem,
  insideKey: Pem,
  issuer: z.url(),
  jwks: z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(Keys),
  tokenSecret: z
    .string()
    .regex(/^([0-9a-f]{2}){32,}$/)
    .transform((hex): Uint8Array => Buffer.from(hex, 'hex')),
})

/** Reads the files and polls them for changes. @throws MooringError `files_unreadable` */
export function openMountedFiles(deps: MountedFilesDeps): Promise<MountedFiles> {
  const { log, everyMs } = deps
  const says = {
    changed: 'the mounted certificate or keys have changed',
    failed: 'the mounted files cannot be read; the previous ones stay in use',
  }
  return pollFiles({ read: () => readAll(deps), says, log, everyMs })
}

async function readAll({ directory, tlsDirectory = directory }: MountedFilesDeps): Promise<ApiFiles> {
  const paths = {
    certificate: join(tlsDirectory, 'tls.crt'),
    key: join(tlsDirectory, 'tls.key'),
    insideCertificate: join(directory, 'tls.crt'),
    insideKey: join(directory, 'tls.key'),
    issuer: join(directory, 'issuer'),
    jwks: join(directory, 'jwks.json'),
    tokenSecret: join(directory, 'token-secret'),
  }
  try {
    const texts = await Promise.all(
      Object.entries(paths).map(async ([name, path]) => [name, await readFile(path, 'utf8')] as const),
    )
    const raw = Object.fromEntries(texts.map(([name, text]) => [name, text.startsWith('-----BEGIN ') ? text : text.trim()]))
    const { jwks, insideCertificate, insideKey, ...files } = Content.parse(raw)
    const inside = { certificate: insideCertificate, key: insideKey }
    return { ...files, jwks, inside }
  } catch (error) {
    // A ZodError may quote its input, which contains keys: only the names of the fields are kept.
    const reason =
      error instanceof z.ZodError ? `invalid: ${error.issues.map(({ path }) => path.join('.')).join(', ')}` : codeOf(error)
    throw new MooringError('files_unreadable', `the mounted Secret in ${directory} cannot be used (${reason})`)
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unreadable'
