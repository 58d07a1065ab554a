import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JSONWebKeySet } from 'jose'
import type { Logger } from 'pino'
import { z } from 'zod'
import { MooringError } from '../shared/errors.ts'

/** The kubelet needs up to a minute to put a changed Secret in place; on top of that this does not count. */
const LOOK_MS = 10_000

/** What the operator keeps for the API in its Secret, as files of a volume. */
export interface ApiFiles {
  /** PEM of the listeners' certificate chain, and its key. */
  readonly certificate: string
  readonly key: string
  /** The operator's own, for callers inside the cluster, whoever's the listeners' are. */
  readonly inside: { readonly certificate: string; readonly key: string }
  /** Name and public keys of Mooring's own issuer. */
  readonly issuer: string
  readonly jwks: JSONWebKeySet
  /** API tokens made with an Idempotency-Key are derived from it. A secret. */
  readonly tokenSecret: Uint8Array
}

export interface MountedFilesDeps {
  /** Where the operator's Secret is mounted. */
  readonly directory: string
  /** Where `tls.crt` and `tls.key` are, when they are not the operator's. */
  readonly tlsDirectory?: string | undefined
  readonly log: Pick<Logger, 'info' | 'error'>
  readonly everyMs?: number
}

/** The files as they are now. Dispose of it to stop looking. */
export interface MountedFiles extends Disposable {
  current(): ApiFiles
  /** `handler` is called after each change that could be read; another is kept for the next look. */
  onChange(handler: (files: ApiFiles) => void): void
  /** Looks at once. The timer calls this. */
  look(): Promise<void>
}

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

/** Reads the files and looks for changes from then on. @throws MooringError `files_unreadable` */
export async function openMountedFiles(deps: MountedFilesDeps): Promise<MountedFiles> {
  const { log, everyMs = LOOK_MS } = deps
  const handlers: ((files: ApiFiles) => void)[] = []
  let known = await readAll(deps)

  async function look(): Promise<void> {
    try {
      const now = await readAll(deps)
      if (now.text === known.text) return
      known = now
      log.info('the mounted certificate or keys have changed')
      for (const handler of handlers) handler(now.files)
    } catch (error) {
      log.error({ err: error }, 'the mounted files cannot be read; those from before are used on')
    }
  }

  const timer = setInterval(() => void look(), everyMs).unref()
  return {
    current: () => known.files,
    onChange: (handler) => void handlers.push(handler),
    look,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

async function readAll({ directory, tlsDirectory = directory }: MountedFilesDeps): Promise<{ text: string; files: ApiFiles }> {
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
    return { text: JSON.stringify(raw), files: { ...files, jwks, inside } }
  } catch (error) {
    // A ZodError may quote what it was given, and these are keys: its fields' names alone are kept.
    const why =
      error instanceof z.ZodError ? `wrong: ${error.issues.map(({ path }) => path.join('.')).join(', ')}` : codeOf(error)
    throw new MooringError('files_unreadable', `the mounted Secret in ${directory} cannot be used (${why})`)
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unreadable'
